"""Several cities at once: the model makes one call for each, and they run side by side."""

from typing import Literal

import callwright

DEGREES = {"Oslo": 4, "Paris": 17, "Rome": 24}


@callwright.tool
def get_weather(city: str, unit: Literal["c", "f"] = "c") -> dict[str, object]:
    """Weather of a city.

    Args:
        city: Name of the city.
        unit: Celsius or Fahrenheit.
    """
    if city not in DEGREES:
        raise callwright.Retry(f"There is no city {city!r} here. Known are: {', '.join(DEGREES)}.")
    degrees = DEGREES[city]
    return {"city": city, "degrees": degrees if unit == "c" else degrees * 9 / 5 + 32}


if __name__ == "__main__":
    agent = callwright.Agent(model="simulated-native", tools=[get_weather], instructions="Answer in one sentence.")
    result = callwright.run_sync(agent, "What is the weather in Oslo, Paris and Rome?")
    for call in result.calls:
        print(call.name, call.status, call.text)
    print(result.text)
