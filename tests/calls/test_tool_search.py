"""The search for tools: what fits a query best comes first, and what does not fit at all does not come."""

import json
import time
from typing import Any, Final

import pytest

from callwright.calls.tool_index import ToolIndex
from callwright.calls.tool_search import search_tools
from callwright.conversation import FunctionTool
from tests.support.paths import ROOT

# For each language, tools with a description in it, and a request of a user for each.
LANGUAGES: Final = json.loads((ROOT / "tests/calls/tool_search_languages.json").read_text(encoding="utf-8"))


def tool(name: str, description: str | None = None, **properties: str | None) -> FunctionTool:
    """A tool with parameters of these descriptions."""
    schema = {key: {"type": "string", "description": told} for key, told in properties.items()}
    return FunctionTool(name, description, {"type": "object", "properties": schema} if schema else None)


TOOLS = [
    tool("get_weather", "The weather of a city.", city="The name of the city."),
    tool("get_forecast", "What the weather will be.", city="The name of the city.", days="How many days ahead."),
    tool("send_mail", "Sends a mail.", to="Whom to send it to.", text="What it says."),
    tool("listOpenIssues", "Shows what is open in a repository.", repository="Owner and name."),
    tool("run_sql", "Runs a query against the database.", statement="SELECT * FROM cities"),
    tool("ping"),
]


def found(query: str, tools: list[FunctionTool] = TOOLS, **how: Any) -> list[str]:
    return [each.name for each in search_tools(tools, query, **how)]


# --- ranking ---


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("weather", "get_weather"),
        ("forecast", "get_forecast"),
        ("the weather in the next days", "get_forecast"),
        ("send a mail", "send_mail"),
        ("database", "run_sql"),
        ("repository issues", "listOpenIssues"),
        ("ping", "ping"),
    ],
)
def test_what_fits_best_comes_first(query: str, first: str) -> None:
    assert found(query)[0] == first


def test_a_word_in_the_name_says_more_than_one_in_the_description_and_that_more_than_one_in_a_parameter() -> None:
    tools = [
        tool("a", "Does something.", paper="What to print."),
        tool("b", "Prints a paper."),
        tool("paper", "Does something."),
    ]
    assert found("paper", tools) == ["paper", "b", "a"]


def test_more_words_that_fit_say_more() -> None:
    tools = [tool("a", "Opens a red door."), tool("b", "Opens a red door slowly."), tool("c", "Opens a window.")]
    assert found("open the red door slowly", tools)[0] == "b"


def test_a_rare_word_says_more_than_one_that_all_have() -> None:
    tools = [*(tool(f"t{number}", "Reads a file.") for number in range(9)), tool("other", "Reads a calendar.")]
    assert found("read calendar", tools)[0] == "other"


ISSUES: Final = [
    tool(f"{verb}_issue", "Does it to an issue of the tracker.") for verb in ("close", "open", "label", "lock")
]


def test_a_word_that_most_tools_have_finds_them_if_no_rarer_word_does() -> None:
    tools = [*ISSUES, tool("read_page", "Reads a page of the wiki.")]
    assert found("Show me the issue", tools) == [each.name for each in [*ISSUES, tools[-1]]]
    assert found("issue", tools) == [each.name for each in ISSUES]
    assert found("the page", tools)[0] == "read_page"


def test_without_fillers_only_the_words_of_names_may_be_common() -> None:
    index = ToolIndex(ISSUES)
    assert index.search("the tracker", fillers=False) == []
    assert index.search("the tracker") == ISSUES
    assert index.search("an issue", fillers=False) == ISSUES


@pytest.mark.parametrize(
    "query", ["mails", "mailing", "SEND", "Sending", "sends", "send-mail", "send_mail", "sendMail send"]
)
def test_other_forms_of_a_word_fit(query: str) -> None:
    assert found(query)[0] == "send_mail"


@pytest.mark.parametrize("query", ["open issues", "listOpenIssues", "issues", "list"])
def test_a_name_in_camel_case_is_made_of_words(query: str) -> None:
    assert found(query)[0] == "listOpenIssues"


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("parseHTTPResponse", "http response"),
        ("S3Upload", "upload"),
        ("v2_users", "users"),
        ("mcp__github__create_issue", "github issue"),
        ("get-user-info", "user info"),
        ("UPPER", "upper"),
    ],
)
def test_names_are_read_word_by_word(name: str, query: str) -> None:
    assert found(query, [tool("other", "Something else."), tool(name)]) == [name]


def test_the_name_of_a_parameter_fits() -> None:
    assert found("days") == ["get_forecast"]


def test_what_is_alike_stays_in_its_order() -> None:
    tools = [tool(f"t{number}", "Reads a file.") for number in range(5)]
    assert found("file", tools) == ["t0", "t1", "t2", "t3", "t4"]


def test_the_same_query_finds_the_same() -> None:
    assert len({tuple(found("weather city mail")) for _ in range(5)}) == 1


def test_no_more_come_than_are_wanted() -> None:
    tools = [tool(f"t{number}", "Reads a file.") for number in range(50)]
    assert len(found("file", tools)) == 8
    assert found("file", tools, limit=2) == ["t0", "t1"]


def test_what_does_not_fit_at_all_does_not_come() -> None:
    assert found("zebra") == []
    assert set(found("weather")) == {"get_weather", "get_forecast"}


# --- odd queries ---


@pytest.mark.parametrize("query", ["", " ", "\n\t", "?!", '""', "***", "_", "--", "()", "🌍", "\x00", "\ud800"])
def test_a_query_without_words_finds_nothing(query: str) -> None:
    assert found(query) == []


def test_nothing_is_found_among_nothing() -> None:
    assert found("weather", []) == []


@pytest.mark.parametrize(
    "query",
    [
        '"weather',
        'weather"',
        '""weather""',
        "'; DROP TABLE tools; -- weather",
        '" OR 1=1 --weather',
        "weather* NEAR(x, 2)",
        "name:weather",
        "{name description}: weather",
        "-weather",
        "^weather",
        "weather AND NOT weather",
        "(weather",
        "weather\x00",
        "weather;",
        "%weather%",
        "bm25(tools) weather",
    ],
)
def test_a_query_is_words_and_nothing_else(query: str) -> None:
    assert {"get_weather", "get_forecast"} <= set(found(query))


def test_words_of_the_query_language_are_words() -> None:
    tools = [tool("a", "Either or."), tool("b", "Not this."), tool("c", "Near and far."), tool("d", "Something else.")]
    assert [found(word, tools) for word in ("OR", "NOT", "AND", "NEAR")] == [["a"], ["b"], ["c"], ["c"]]


def test_a_long_query_is_borne() -> None:
    words = " ".join(f"w{number}" for number in range(5_000))
    assert found(f"{words} forecast") == ["get_forecast"]
    assert found("x" * 100_000) == []


# --- other languages ---


@pytest.mark.parametrize(
    ("described", "query"),
    [
        ("Zeigt das Wetter in München.", "münchen"),
        ("Zeigt das Wetter in München.", "MUNCHEN"),
        ("Montre la météo.", "meteo"),
        ("Montre la météo.", "MÉTÉO"),
        ("Показывает погоду в городе.", "ПОГОДУ"),
        ("Δείχνει τον καιρό.", "καιρό"),
        ("يعرض الطقس", "الطقس"),
        ("날씨 를 보여줍니다", "날씨"),
        ("查询 天气", "天气"),
    ],
)
def test_words_of_any_language_fit(described: str, query: str) -> None:
    assert found(query, [tool("a", "Something else."), tool("b", described)]) == ["b"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_requests_in_any_language_find_their_tools(language: str) -> None:
    """Each is for one of twelve tools, and most of them have the words in another form."""
    rows = LANGUAGES[language]
    index = ToolIndex([FunctionTool(name, described) for name, described, _ in rows])
    ranks = []
    for name, _, request in rows:
        names = [each.name for each in index.search(request)]
        ranks.append(names.index(name) + 1 if name in names else None)
    assert sum(rank == 1 for rank in ranks) >= 9, ranks
    assert sum(rank is not None for rank in ranks) >= 11, ranks


@pytest.mark.parametrize(
    ("described", "query"),
    [
        ("查询城市的天气", "天气"),
        ("下雨的时候提醒", "雨"),
        ("雨", "下雨吗"),
        ("都市の天気を調べる", "明日の東京の天気は？"),
        ("ดูสภาพอากาศของเมือง", "สภาพอากาศวันนี้"),
        ("Wetter einer Stadt", "Wetterbericht"),
        ("Regenwetter", "wetter"),
        ("Показывает погоду", "погода"),
        ("Ｗｅａｔｈｅｒ", "weather"),
        ("straße", "STRASSE"),
        ("مصباح", "المصباح"),
    ],
)
def test_a_word_fits_in_other_forms_and_in_compounds(described: str, query: str) -> None:
    assert found(query, [tool("a", "Something else."), tool("b", described)]) == ["b"]


@pytest.mark.parametrize(
    ("described", "query"),
    [
        ("The weather.", "other"),
        ("The weather.", "eat her"),
        ("Version 2024.", "2025"),
        ("In a file.", "info"),
        ("7", "17"),
    ],
)
def test_words_that_only_look_alike_do_not_fit(described: str, query: str) -> None:
    assert found(query, [tool("a", "Nothing."), tool("b", described)]) == []


def test_an_accent_may_be_a_character_of_its_own() -> None:
    composed, apart = "m\u00e9t\u00e9o", "me\u0301te\u0301o"
    for described in (composed, apart):
        for query in (composed, apart):
            assert found(query, [tool("a", "Something else."), tool("b", f"La {described}.")]) == ["b"]


# --- odd tools ---


@pytest.mark.parametrize(
    "parameters",
    [
        None,
        {},
        {"type": "object"},
        {"type": "object", "properties": None},
        {"type": "object", "properties": []},
        {"type": "object", "properties": 5},
        {"type": "object", "properties": {"x": None, "y": True, "z": {"description": 5}}},
    ],
)
def test_a_tool_with_an_odd_schema_can_be_found(parameters: Any) -> None:
    odd = FunctionTool("odd_one", "Does odd things.", parameters)
    assert search_tools([odd, *TOOLS], "odd") == [odd]


def test_a_tool_may_say_nothing() -> None:
    assert found("weather", [FunctionTool("a"), FunctionTool("", ""), tool("weather")]) == ["weather"]


def test_many_tools_are_searched_quickly() -> None:
    tools = [
        tool(f"tool_{number}", f"Does thing number {number} to a file of a user.", path="Where it is.", mode="How.")
        for number in range(5_000)
    ]
    tools.append(tool("needle", "Sews a button on a shirt."))
    begin = time.process_time()
    assert found("sew on a button", tools)[0] == "needle"
    assert time.process_time() - begin < 2
