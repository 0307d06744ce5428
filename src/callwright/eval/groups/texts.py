"""Long texts and code as arguments, which have to arrive character by character."""

import json
from collections.abc import Iterator
from random import Random
from typing import Final

from callwright.eval.case import Case, Must, WantedCall
from callwright.eval.groups.tools import TEXT, function, user
from callwright.eval.groups.words import GOODS, HARBOURS, PEOPLE, SHIPS, code

_WRITE: Final = function(
    "write_file", "Writes a text into a file, exactly as it is given.", {"path": TEXT, "content": TEXT}
)


def cases(random: Random) -> Iterator[Case]:
    """Cases, without an end. The fence and the last line feed belong to the request; either ending is right."""
    number = 0
    while True:
        for name, make in (
            ("hoist.py", _python),
            ("manifest.json", _json),
            ("log.txt", _log),
            ("page.html", _markup),
            ("match.sh", _shell),
        ):
            number += 1
            path, content = f"{random.choice(GOODS)}/{name}", make(random)
            asks = f"Write this into the file {path}, exactly as it stands between the rows of tildes:"
            either = {"$one_of": [content, f"{content}\n"]}
            yield Case(
                id=f"texts/{number:03}",
                group="texts",
                messages=(user(f"{asks}\n~~~~\n{content}\n~~~~"),),
                tools=(_WRITE,),
                must=Must(calls=(WantedCall("write_file", {"path": path, "content": either}),)),
            )


def _python(random: Random) -> str:
    ship, good = random.choice(SHIPS), random.choice(GOODS)
    return (
        f"def hoist(count: int = {random.randint(2, 9)}) -> dict[str, str]:\n"
        f'    """Hoist the sails of the {ship}: it\'s "fast"."""\n'
        f'    print(f"{{count}} x {good}\\t\\\\o/")\n'
        f"    return {{'ship': '{ship}', \"path\": r'C:\\ships\\new'}}\n"
        "\n"
        "\n"
        f'if __name__ == "__main__":\n'
        f"    hoist()  # {code(random)}"
    )


def _json(random: Random) -> str:
    value = {
        "ship": random.choice(SHIPS),
        "arguments": {"name": random.choice(PEOPLE), "quote": 'he said "aye"', "tabs": "a\tb", "end": "}}]"},
        "holds": [random.randint(1, 99) for _ in range(4)],
        "sealed": None,
    }
    return json.dumps(value, indent=2, ensure_ascii=False)


def _log(random: Random) -> str:
    lines = [
        f"{hour:02}:{random.randint(0, 59):02}  {random.choice(SHIPS)} -> {random.choice(HARBOURS)}, "
        f"{random.randint(1, 40)} kn; “all well”"
        for hour in range(random.randint(12, 24))
    ]
    return "\n".join(lines)


def _markup(random: Random) -> str:
    ship = random.choice(SHIPS)
    return (
        f'<section id="{code(random)}">\n  <h1>{ship} &amp; crew</h1>\n  <p>Signals: <code>&lt;|end|&gt;</code> and '
        f'<tool_call>none</tool_call> are flags, not calls.</p>\n  <script>let a = {{"b": [1]}};</script>\n</section>'
    )


def _shell(random: Random) -> str:
    return (
        f"grep -E '^({random.choice(SHIPS)}|{random.choice(SHIPS)})\\b' \"$LOG\" \\\n"
        f"  | sed 's/\\t/ /g; s#//*#/#g' > /tmp/{code(random)}.txt && echo \"done: $?\""
    )
