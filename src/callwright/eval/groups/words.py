"""Vocabulary of the cases: a harbour town with its ships, people, crafts and weather."""

from random import Random
from typing import Final

SHIPS: Final = tuple("Kestrel Amberjack Halcyon Petrel Sandpiper Corvina Windrose Marlowe Bluefin Tamarisk".split())
HARBOURS: Final = tuple("Skarvik Lundhavn Brekkeby Ostermouth Fenwick Tarnsea Holmsund Calloway".split())
PEOPLE: Final = tuple(
    "Ingrid Solberg|Tomas Verlaine|Nadia Okafor|Piotr Zielak|Mei Tanaka|Ruben Castell|Elin Moberg|Yusuf Demir".split(
        "|"
    )
)
GOODS: Final = tuple("rope tar lanterns sailcloth barrels anchors varnish biscuits oats candles".split())
CRAFTS: Final = tuple("kayak lantern beehive greenhouse kiln orchard windmill telescope loom ferry".split())
PLANTS: Final = tuple("rosemary fuchsia quince lovage juniper angelica saffron medlar".split())
ROOMS: Final = tuple("attic cellar library workshop pantry gallery".split())
STREETS: Final = tuple("Netmaker Lane|Pilot Row|Cooper Street|Gull Terrace|Customs Quay|Chandler Hill".split("|"))
UNICODE: Final = tuple(
    "Þórshöfn|Łódź|São Tomé|Ýlirvík|北の灯台|Ναύπλιο|Кижи|Zürich – Höngg|café 🌊 bar|Đà Nẵng".split("|")
)
_MONTHS: Final = "January February March April May June July August September October November December".split()


def date(random: Random) -> tuple[str, str]:
    """A day, as people write it and as YYYY-MM-DD."""
    year, month, day = random.randint(2027, 2034), random.randint(1, 12), random.randint(1, 28)
    return f"{day} {_MONTHS[month - 1]} {year}", f"{year}-{month:02}-{day:02}"


def code(random: Random, letters: str = "KLMTX") -> str:
    """A short code, such as `K-417`."""
    return f"{random.choice(letters)}-{random.randint(100, 999)}"


def several(random: Random, of: tuple[str, ...], number: int) -> list[str]:
    """Sample `number` different words."""
    return random.sample(of, number)
