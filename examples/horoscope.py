"""A tool that was defined elsewhere, in OpenAI's form: name, description and schema are given, any callable runs it."""

import callwright

DEFINITION = {
    "name": "get_horoscope",
    "description": "Get today's horoscope for an astrological sign.",
    "parameters": {
        "type": "object",
        "properties": {
            "sign": {"type": "string", "description": "An astrological sign like Taurus or Aquarius."},
            "tenant": {"type": "string"},
        },
        "required": ["sign", "tenant"],
        "additionalProperties": False,
    },
}


async def call_anything(**arguments: str) -> str:
    """Stands for a call over the network."""
    return f"{arguments['sign']}: next Tuesday you will befriend a baby otter. ({arguments['tenant']})"


get_horoscope = callwright.bind(callwright.tool(call_anything, **DEFINITION), tenant="t1")

if __name__ == "__main__":
    agent = callwright.Agent(model="simulated", tools=[get_horoscope])
    result = callwright.run_sync(agent, "What is my horoscope? I am an Aquarius.")
    print(result.to_messages()[1]["tool_calls"][0]["function"]["arguments"])
    print(result.text)
