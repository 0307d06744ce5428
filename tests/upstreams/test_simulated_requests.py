"""What the simulated model makes of the requests that people try first: which tools it calls, with which arguments."""

import json
from typing import Any, Final

import pytest
from msgspec.structs import replace

from callwright.conversation import (
    Call,
    CallOutput,
    Conversation,
    FunctionTool,
    Item,
    Message,
    NamedTool,
    ResponseFormat,
    TextPart,
    ToolChoice,
)
from callwright.schema import validate
from callwright.upstreams.simulated.answer import answer

TEXT: Final = {"type": "string"}
NUMBER: Final = {"type": "number"}
WHOLE: Final = {"type": "integer"}
FLAG: Final = {"type": "boolean"}
TEXTS: Final = {"type": "array", "items": TEXT}


def one_of(*members: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(members)}


def described(schema: dict[str, Any], words: str) -> dict[str, Any]:
    return {**schema, "description": words}


def tool(name: str, about: str | None = None, optional: tuple[str, ...] = (), /, **properties: Any) -> FunctionTool:
    """A tool that needs all of its properties but those named optional."""
    required = [key for key in properties if key not in optional]
    schema = {"type": "object", "properties": properties, "required": required}
    return FunctionTool(name, about, schema)


WEATHER = tool(
    "get_weather", "Get the current weather of a city.", ("unit",), city=TEXT, unit=one_of("celsius", "fahrenheit")
)
ADD = tool("add", "Add two numbers.", a=NUMBER, b=NUMBER)
MULTIPLY = tool("multiply", "Multiply two numbers.", a=NUMBER, b=NUMBER)
CALCULATOR = tool("calculator", "Evaluate an arithmetic expression.", expression=TEXT)
OPERATION = tool("calculate", None, operation=one_of("add", "subtract", "multiply", "divide"), x=NUMBER, y=NUMBER)
CURRENCY = tool("convert_currency", "Convert money.", amount=NUMBER, **{"from": TEXT, "to": TEXT})
CODES = tool(
    "exchange",
    "Exchange rate between two currencies.",
    from_currency=one_of("EUR", "USD", "GBP"),
    to_currency=one_of("EUR", "USD", "GBP"),
    amount=NUMBER,
)
MAIL = tool("send_email", "Send an e-mail.", ("subject",), to=TEXT, subject=TEXT, body=TEXT)
ADDRESS = tool(
    "invite", "Invite somebody.", ("link",), email={**TEXT, "format": "email"}, link={**TEXT, "format": "uri"}
)
EVENT = tool(
    "create_event",
    "Create an event in the calendar.",
    ("attendees",),
    title=TEXT,
    start={**TEXT, "format": "date-time"},
    attendees=TEXTS,
)
SEARCH = tool("web_search", "Search the web.", ("limit",), query=TEXT, limit=WHOLE)
STOCK = tool("get_stock_price", "Current price of a stock.", symbol=described(TEXT, "Ticker symbol, e.g. AAPL"))
TODO = tool(
    "add_todo", "Add a task to the todo list.", ("priority",), task=TEXT, priority=one_of("low", "medium", "high")
)
SHOPPING = tool("add_items", "Add items to the shopping list.", items=TEXTS)
TRANSLATE = tool("translate", "Translate a text.", text=TEXT, target_language=TEXT)
TIMER = tool("set_timer", "Set a timer.", ("label",), seconds=WHOLE, label=TEXT)
MINUTES = tool("start_countdown", "Start a countdown.", minutes=WHOLE)
REMIND = tool("set_reminder", "Set a reminder.", text=TEXT, time=TEXT)
UNITS = tool("convert_units", "Convert a value.", value=NUMBER, from_unit=TEXT, to_unit=TEXT)
TEMPERATURE = tool(
    "convert_temperature",
    None,
    value=NUMBER,
    from_unit=one_of("celsius", "fahrenheit"),
    to_unit=one_of("celsius", "fahrenheit"),
)
FLIGHTS = tool(
    "search_flights",
    "Search flights.",
    ("passengers",),
    origin=TEXT,
    destination=TEXT,
    date={**TEXT, "format": "date"},
    passengers=WHOLE,
)
LIGHT = tool("set_light", "Switch the lights of a room.", room=TEXT, on=FLAG)
HOTEL = tool("book_hotel", "Book a hotel room.", ("breakfast", "nights"), city=TEXT, nights=WHOLE, breakfast=FLAG)
AVERAGE = tool("average", "Average of numbers.", numbers={"type": "array", "items": NUMBER})
READ = tool("read_file", "Read a file.", path=TEXT)
FETCH = tool("fetch_page", "Fetch a web page.", url=TEXT)
TIME = tool("get_current_time", "The time in a timezone.", timezone=TEXT)
ORDER = tool("track_order", "Where an order is.", order_id=TEXT)
CONTACT = tool(
    "create_contact",
    "Create a contact.",
    person={
        "type": "object",
        "properties": {
            "name": TEXT,
            "age": WHOLE,
            "address": {"type": "object", "properties": {"city": TEXT}, "required": ["city"]},
        },
        "required": ["name", "age", "address"],
    },
)
NULLABLE = tool("find_place", "Find a place.", name=TEXT, country={"type": ["string", "null"]})
SONG = tool("play_song", "Play a song.", ("artist",), title=TEXT, artist=TEXT)
DICE = tool("roll_dice", "Roll dice.", sides=WHOLE, count=WHOLE)
BARE = FunctionTool("lookup", "Look up the weather.", {"type": "object", "properties": {"city": TEXT, "days": WHOLE}})

DISTANCE = tool("get_distance", "Between two places.", origin=TEXT, destination=TEXT)
PERSON = tool("extract", None, name=TEXT, age=WHOLE, city=TEXT)
DEVICE = tool("control_device", "Switch a device.", device=TEXT, action=one_of("turn_on", "turn_off"))
SMS = tool("send_sms", "Send a text message.", to=TEXT, message=TEXT)
CODE = {"type": "string", "pattern": "^[A-Z]{3}$"}
MONEY = tool("convert_money", None, amount=NUMBER, from_currency=CODE, to_currency=CODE)

# A request, the tools that it comes with, and the calls that are made.
CASES: Final[list[tuple[str, tuple[FunctionTool, ...], list[tuple[str, dict[str, Any]]]]]] = [
    ("What is the weather in Paris?", (WEATHER,), [("get_weather", {"city": "Paris"})]),
    ("weather in paris", (WEATHER,), [("get_weather", {"city": "paris"})]),
    ("What's the weather like in new york today?", (WEATHER,), [("get_weather", {"city": "new york"})]),
    ("Tokyo weather please", (WEATHER,), [("get_weather", {"city": "Tokyo"})]),
    ("Is it raining in Rio de Janeiro?", (WEATHER,), [("get_weather", {"city": "Rio de Janeiro"})]),
    ("weather in San Francisco, CA", (WEATHER,), [("get_weather", {"city": "San Francisco, CA"})]),
    ("What's the weather in Paris, France?", (WEATHER,), [("get_weather", {"city": "Paris, France"})]),
    ("weather in Paris and London", (WEATHER,), [("get_weather", {"city": c}) for c in ("Paris", "London")]),
    ("Weather in Oslo, Paris and Rome?", (WEATHER,), [("get_weather", {"city": c}) for c in ("Oslo", "Paris", "Rome")]),
    ("weather in paris and london", (WEATHER,), [("get_weather", {"city": c}) for c in ("paris", "london")]),
    (
        "How hot is it in Austin, TX in fahrenheit?",
        (WEATHER,),
        [("get_weather", {"city": "Austin, TX", "unit": "fahrenheit"})],
    ),
    ("weather in Zürich", (BARE,), [("lookup", {"city": "Zürich"})]),
    ("weather in Bern for the next 3 days", (BARE,), [("lookup", {"city": "Bern", "days": 3})]),
    ("Hello, how are you?", (WEATHER, ADD, MAIL), []),
    ("Tell me a joke", (WEATHER, ADD, MAIL), []),
    ("Add 17 and 25.", (ADD,), [("add", {"a": 17, "b": 25})]),
    ("What is 17 + 25?", (ADD, MULTIPLY), [("add", {"a": 17, "b": 25})]),
    ("What is 3 times 4?", (ADD, MULTIPLY), [("multiply", {"a": 3, "b": 4})]),
    ("multiply 2.5 by -4", (ADD, MULTIPLY), [("multiply", {"a": 2.5, "b": -4})]),
    ("What is the sum of 1,000 and two?", (MULTIPLY, ADD), [("add", {"a": 1000, "b": 2})]),
    ("What is 12*7?", (CALCULATOR,), [("calculator", {"expression": "12*7"})]),
    ("What is (1 + 2) * 3?", (CALCULATOR,), [("calculator", {"expression": "(1 + 2) * 3"})]),
    ("What is 3 times 4?", (CALCULATOR,), [("calculator", {"expression": "3 * 4"})]),
    ("What is 9 divided by 3?", (OPERATION,), [("calculate", {"operation": "divide", "x": 9, "y": 3})]),
    ("5 - 3", (OPERATION,), [("calculate", {"operation": "subtract", "x": 5, "y": 3})]),
    ("Add 3 and 4, then multiply 5 by 6", (ADD, MULTIPLY), [("add", {"a": 3, "b": 4}), ("multiply", {"a": 5, "b": 6})]),
    ("Convert 100 USD to EUR", (CURRENCY,), [("convert_currency", {"amount": 100, "from": "USD", "to": "EUR"})]),
    (
        "How much is $50 in euros?",
        (CODES,),
        [("exchange", {"from_currency": "USD", "to_currency": "EUR", "amount": 50})],
    ),
    ("100 dollars in GBP", (CODES,), [("exchange", {"from_currency": "USD", "to_currency": "GBP", "amount": 100})]),
    (
        "Send an e-mail to anna@example.com saying hello",
        (MAIL, WEATHER),
        [("send_email", {"to": "anna@example.com", "body": "hello"})],
    ),
    (
        'Email bob@example.com with subject "Lunch" and body "At noon?"',
        (MAIL,),
        [("send_email", {"to": "bob@example.com", "subject": "Lunch", "body": "At noon?"})],
    ),
    (
        "Mail bob@example.com with the subject Lunch and tell him that we meet at noon",
        (MAIL,),
        [("send_email", {"to": "bob@example.com", "subject": "Lunch", "body": "we meet at noon"})],
    ),
    (
        "Invite eva@example.org to https://example.org/party?x=1.",
        (ADDRESS,),
        [("invite", {"email": "eva@example.org", "link": "https://example.org/party?x=1"})],
    ),
    (
        "Schedule an event called Standup tomorrow at 3pm with Bob and Eva",
        (EVENT,),
        [("create_event", {"title": "Standup", "start": "2026-01-16T15:00:00Z", "attendees": ["Bob", "Eva"]})],
    ),
    ("Search the web for python tutorials", (SEARCH,), [("web_search", {"query": "python tutorials"})]),
    ("Search for cheap hotels in Lisbon", (SEARCH,), [("web_search", {"query": "cheap hotels in Lisbon"})]),
    ('google "tool calling"', (SEARCH,), [("web_search", {"query": "tool calling"})]),
    ("What's the stock price of AAPL?", (STOCK, WEATHER), [("get_stock_price", {"symbol": "AAPL"})]),
    ("stock prices for AAPL and MSFT", (STOCK,), [("get_stock_price", {"symbol": s}) for s in ("AAPL", "MSFT")]),
    ("Add buy milk to my todo list", (TODO, ADD), [("add_todo", {"task": "buy milk"})]),
    (
        "Create a todo: call the bank, high priority",
        (TODO,),
        [("add_todo", {"task": "call the bank", "priority": "high"})],
    ),
    (
        "Add milk, eggs and bread to my shopping list",
        (SHOPPING,),
        [("add_items", {"items": ["milk", "eggs", "bread"]})],
    ),
    (
        "Translate good morning to French",
        (TRANSLATE,),
        [("translate", {"text": "good morning", "target_language": "French"})],
    ),
    (
        "Translate 'How are you?' into German",
        (TRANSLATE,),
        [("translate", {"text": "How are you?", "target_language": "German"})],
    ),
    ("Set a timer for 5 minutes", (TIMER,), [("set_timer", {"seconds": 300})]),
    ("Set a timer for 90 seconds called pasta", (TIMER,), [("set_timer", {"seconds": 90, "label": "pasta"})]),
    ("Start a countdown of ten minutes", (MINUTES,), [("start_countdown", {"minutes": 10})]),
    ("Remind me to buy milk at 9am", (REMIND,), [("set_reminder", {"text": "buy milk", "time": "9am"})]),
    ("Convert 10 km to miles", (UNITS,), [("convert_units", {"value": 10, "from_unit": "km", "to_unit": "miles"})]),
    (
        "Convert 30°C to fahrenheit",
        (TEMPERATURE,),
        [("convert_temperature", {"value": 30, "from_unit": "celsius", "to_unit": "fahrenheit"})],
    ),
    (
        "Find flights from Berlin to New York on March 5th for 2 people",
        (FLIGHTS,),
        [("search_flights", {"origin": "Berlin", "destination": "New York", "date": "2026-03-05", "passengers": 2})],
    ),
    (
        "flights to Rome from Oslo on 2026-05-01",
        (FLIGHTS,),
        [("search_flights", {"origin": "Oslo", "destination": "Rome", "date": "2026-05-01"})],
    ),
    ("Turn on the lights in the kitchen", (LIGHT,), [("set_light", {"room": "kitchen", "on": True})]),
    ("Switch the kitchen lights off", (LIGHT,), [("set_light", {"room": "kitchen", "on": False})]),
    (
        "Book a hotel in Rome for 3 nights without breakfast",
        (HOTEL,),
        [("book_hotel", {"city": "Rome", "nights": 3, "breakfast": False})],
    ),
    ("Book a hotel in Rome with breakfast", (HOTEL,), [("book_hotel", {"city": "Rome", "breakfast": True})]),
    ("What is the average of 3, 5 and 8.5?", (AVERAGE,), [("average", {"numbers": [3, 5, 8.5]})]),
    ("Read the file src/main.py", (READ,), [("read_file", {"path": "src/main.py"})]),
    ("read /etc/hosts and notes.txt", (READ,), [("read_file", {"path": p}) for p in ("/etc/hosts", "notes.txt")]),
    ("Fetch https://example.com/a.html", (FETCH,), [("fetch_page", {"url": "https://example.com/a.html"})]),
    ("What time is it in Europe/Oslo?", (TIME, WEATHER), [("get_current_time", {"timezone": "Europe/Oslo"})]),
    ("What time is it in Tokyo?", (WEATHER, TIME), [("get_current_time", {"timezone": "Tokyo"})]),
    ("Track order 12345", (ORDER,), [("track_order", {"order_id": "12345"})]),
    ("Where is my order #A-77?", (ORDER,), [("track_order", {"order_id": "#A-77"})]),
    (
        "Create a contact for Ada Lovelace, age 36, in London",
        (CONTACT,),
        [("create_contact", {"person": {"name": "Ada Lovelace", "age": 36, "address": {"city": "London"}}})],
    ),
    ("Find the place Springfield", (NULLABLE,), [("find_place", {"name": "Springfield", "country": None})]),
    ("Play Bohemian Rhapsody by Queen", (SONG,), [("play_song", {"title": "Bohemian Rhapsody", "artist": "Queen"})]),
    ("Roll 3 dice with 20 sides", (DICE,), [("roll_dice", {"sides": 20, "count": 3})]),
    (
        "How far is it from Berlin to Munich?",
        (DISTANCE,),
        [("get_distance", {"origin": "Berlin", "destination": "Munich"})],
    ),
    (
        "My name is Ada, I'm 36 and I live in London",
        (PERSON,),
        [("extract", {"name": "Ada", "age": 36, "city": "London"})],
    ),
    ("turn off the bedroom lamp", (DEVICE,), [("control_device", {"device": "bedroom lamp", "action": "turn_off"})]),
    ("text Bob that I'm late", (SMS,), [("send_sms", {"to": "Bob", "message": "I'm late"})]),
    (
        "convert 100 yen to dollars",
        (MONEY,),
        [("convert_money", {"amount": 100, "from_currency": "JPY", "to_currency": "USD"})],
    ),
    (
        "Mail ann@example.com and bob@example.com saying hi",
        (MAIL,),
        [("send_email", {"to": to, "body": "hi"}) for to in ("ann@example.com", "bob@example.com")],
    ),
    (
        "What's the weather in Paris and what is the stock price of AAPL?",
        (STOCK, WEATHER),
        [("get_weather", {"city": "Paris"}), ("get_stock_price", {"symbol": "AAPL"})],
    ),
]


def asked(
    said: str, tools: tuple[FunctionTool, ...], choice: ToolChoice = "auto", *more: Item, parallel: bool = True
) -> Conversation:
    items = (Message("user", (TextPart(said),)), *more)
    return Conversation(items, tools, tool_choice=choice, parallel_tool_calls=parallel)


def made(conversation: Conversation) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in answer(conversation).calls]


@pytest.mark.parametrize(("said", "tools", "calls"), CASES, ids=[f"{said} {tools[0].name}" for said, tools, _ in CASES])
def test_a_request_becomes_the_calls_that_it_asks_for(
    said: str, tools: tuple[FunctionTool, ...], calls: list[tuple[str, Any]]
) -> None:
    assert made(asked(said, tools)) == calls


# --- one call after the other ---


def turns(conversation: Conversation, most: int = 6) -> tuple[list[str], str]:
    """The tools that are called until the model answers, one turn after the other, and the answer."""
    called: list[str] = []
    for number in range(most):
        turn = answer(conversation)
        if not turn.calls:
            return called, turn.text
        items: list[Item] = []
        for index, call in enumerate(turn.calls):
            id_ = f"c{number}_{index}"
            items += [Call(call.name, call.arguments, id_), CallOutput(id_, (TextPart(f"done {len(called) + 1}"),))]
            called.append(call.name)
        conversation = replace(conversation, items=(*conversation.items, *items))
    return called, ""


def test_calls_that_may_not_be_made_together_are_made_one_after_the_other() -> None:
    conversation = asked("Weather in Oslo, Paris and Rome?", (WEATHER, MAIL), parallel=False)
    assert len(made(conversation)) == 1
    called, said = turns(conversation)
    assert called == ["get_weather"] * 3
    assert "done 1" in said
    assert "done 3" in said


def test_a_demand_for_calls_goes_on_to_the_other_tools_and_then_repeats() -> None:
    called, _ = turns(asked("What is the weather in Oslo?", (ADD, WEATHER, MAIL), "required"))
    assert called == ["get_weather", "add", "send_email", "get_weather", "add", "send_email"]


def test_a_demand_for_calls_takes_first_what_the_request_asks_for() -> None:
    said = "Send a mail to a@example.com saying hello, then add 3 and 4"
    called, _ = turns(asked(said, (ADD, WEATHER, MAIL), "required"), most=2)
    assert called == ["send_email", "add", "get_weather"]


def test_a_demand_for_one_tool_repeats_it() -> None:
    called, _ = turns(asked("What is the weather in Oslo?", (ADD, WEATHER), NamedTool("add")), most=2)
    assert called == ["add", "add"]


def test_only_tools_that_are_allowed_are_called() -> None:
    conversation = asked("What is the weather in Oslo?", (WEATHER, ADD), "required")
    assert [name for name, _ in made(replace(conversation, allowed_tools=("add",)))] == ["add"]
    assert not made(replace(conversation, tool_choice="auto", allowed_tools=("add",)))


def test_a_call_that_was_not_run_is_made_again() -> None:
    call = Call("get_weather", "{}", "c")
    refused = CallOutput("c", (TextPart("Error: this call was not run. No city."),))
    assert made(asked("What is the weather in Oslo?", (WEATHER,), "auto", call, refused)) == [
        ("get_weather", {"city": "Oslo"})
    ]


def test_what_a_client_adds_for_itself_is_no_request() -> None:
    reminder = "<system-reminder>\nSend a mail to x@example.com.\n</system-reminder>\n"
    question = "What is the weather in Oslo?"
    wanted = [("get_weather", {"city": "Oslo"})]
    assert made(asked(reminder + question, (MAIL, WEATHER))) == wanted
    assert made(asked(question, (MAIL, WEATHER), "auto", Message("user", (TextPart(reminder),)))) == wanted


def test_outputs_of_calls_that_are_not_told_are_the_answer() -> None:
    conversation = asked("What is the weather in Oslo?", (WEATHER,), "auto", CallOutput("?", (TextPart("Fog"),)))
    assert answer(conversation).text == "The tool says: Fog."


# --- schemas of all kinds ---

NODE: Final = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "left": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
    "required": ["name", "left", "children"],
    "additionalProperties": False,
}
SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "a pattern": {"n": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}},
    "a pattern that looks ahead": {"n": {"type": "string", "pattern": r"^(?=.*\d)(?=.*[a-z])\S{8,}$"}},
    "a recursive reference": {"n": {"$ref": "#/$defs/node"}},
    "a reference to the whole": {"n": {"type": "array", "items": {"$ref": "#"}}},
    "a format that no text names": {"n": {"type": "string", "format": "ipv4"}},
    "a narrow number": {"n": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}},
    "different items": {"n": {"type": "array", "items": WHOLE, "minItems": 3, "uniqueItems": True}},
    "one of two objects": {
        "n": {
            "oneOf": [
                {"type": "object", "properties": {"kind": {"const": kind}, size: NUMBER}, "required": ["kind", size]}
                for kind, size in (("circle", "radius"), ("square", "side"))
            ]
        }
    },
    "all of two": {"n": {"allOf": [{"type": "string"}, {"minLength": 5}, {"maxLength": 6}]}},
    "values of a map": {"n": {"type": "object", "additionalProperties": WHOLE, "minProperties": 1}},
    "members of many types": {"n": {"enum": [1, "two", None]}},
    "anything": {"n": {}},
}


@pytest.mark.parametrize("said", ["Use 3 for Anna and Bert in a square.", ""])
@pytest.mark.parametrize("what", SCHEMAS)
def test_what_a_named_tool_is_called_with_fits(what: str, said: str) -> None:
    schema = {"type": "object", "properties": SCHEMAS[what], "required": ["n"], "$defs": {"node": NODE}}
    calls = made(asked(said, (FunctionTool("f", None, schema),), NamedTool("f")))
    assert calls
    for _, arguments in calls:
        assert validate.is_valid(schema, arguments), arguments


def test_a_value_of_the_request_that_fits_a_pattern_is_taken() -> None:
    schema = {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}
    assert made(asked("Track ABC-1234 please", (tool("track", None, code=schema),))) == [
        ("track", {"code": "ABC-1234"})
    ]


def test_an_answer_by_a_schema_has_what_the_request_names() -> None:
    schema = {"type": "object", "properties": {"city": TEXT, "days": WHOLE}, "required": ["city", "days"]}
    conversation = asked("Plan 4 days in Rome", ())
    wanted = ResponseFormat("json_schema", schema=schema)
    assert json.loads(answer(replace(conversation, response_format=wanted)).text) == {"city": "Rome", "days": 4}


@pytest.mark.parametrize("said", ["1 ", "Paris, ", "1+", "a.b.", "A-", "'", "in ", "((", "Xx ", "<a-b>\n", "</a-b>\n"])
def test_a_long_request_takes_no_longer_than_a_short_one(said: str) -> None:
    short, long = (made(asked(said * many, (WEATHER,), "required")) for many in (1_000, 100_000))
    assert len(short) == len(long)
