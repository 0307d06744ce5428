"""The pages in a real browser: what they show is what the gateway has, whatever is in it, and nothing leaves them."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig, RecordConfig, ServerConfig
from callwright.gateway.config.spending import BudgetConfig, PriceConfig
from callwright.gateway.inspection.turn_source import RecordedTurns
from callwright.problems import PROBLEMS
from tests.support.browser import Watched, browser
from tests.support.http_client import CHAT, request
from tests.support.outputs import QUESTION, TOOLS, block
from tests.support.responses_client import RESPONSES
from tests.support.servers import Answer, Gateway, ModelServer, calling, completion, said, whole
from tests.support.waiting import until

pytestmark = pytest.mark.clients
OPERATOR, ANNA = "cw-root-" + "c" * 40, "cw-anna-" + "a" * 40
KEYS = (
    KeyConfig(name="root", sha256=hash_of(OPERATOR), operator=True),
    KeyConfig(name="anna", sha256=hash_of(ANNA)),
)
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>"
    "<a href=javascript:alert(4)>x</a>\u202e\u0000\u2028{{constructor.constructor('alert(5)')()}}${alert(6)}"
)
PATHS = {"/": "Models", "/ui": "Outcome", "/ui/read": "Reading bench", "/ui/try": "Try it", "/ui/quality": "Over time"}
PATHS["/ui/problems"] = "unmet"
ASKED: dict[str, Any] = {"model": "m", "messages": [QUESTION], "tools": TOOLS}
Opened = Callable[..., Watched]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture
def gateway(model: ModelServer) -> Iterator[Callable[..., str]]:
    """Starts gateways before the model server."""
    with ExitStack() as stack:

        def begin(keys: tuple[KeyConfig, ...] = (), models: tuple[ModelConfig, ...] = (), **server: Any) -> str:
            models = models or (
                ModelConfig(name="m", upstream=model.url, mode="raw", dialect="hermes", retries=1),
                ModelConfig(name="n", upstream=model.url),
                ModelConfig(name="s", upstream="simulated", mode="raw", dialect="hermes"),
            )
            started = Gateway(Config(models=models, keys=keys, server=ServerConfig(**server)))
            stack.callback(started.stop)
            return started.url

        yield begin


@pytest.fixture
def opened(chromium: Any) -> Iterator[Opened]:
    """Opens pages, and finds nothing wrong with any of them in the end."""
    with ExitStack() as stack:
        pages: list[Watched] = []

        def begin(url: str, width: int = 1280, scheme: str = "light") -> Watched:
            context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
            stack.callback(context.close)
            context.set_default_timeout(10_000)
            pages.append(Watched(context.new_page(), url))
            return pages[-1]

        yield begin
    assert [wrong for page in pages for wrong in page.wrong] == []


def ask(url: str, key: str = "", **fields: Any) -> Any:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return request(url + CHAT, {**ASKED, **fields}, headers=headers)


def last(url: str, key: str = "") -> dict[str, Any]:
    """The last turn, when it is over."""
    headers = {"authorization": f"Bearer {key}"} if key else {}

    def rows() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = request(url + "/ui/api/turns", method="GET", headers=headers).json["rows"]
        return found

    until(lambda: bool(rows()) and rows()[-1]["over"])
    return rows()[-1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("path", PATHS)
def test_every_page_shows_what_it_is_for_at_every_width(
    gateway: Any, opened: Opened, path: str, width: int, scheme: str
) -> None:
    url = gateway()
    ask(url, model="s")
    last(url)
    page = opened(url, width, scheme).open(path)
    page.get_by_text(PATHS[path], exact=True).first.wait_for(state="attached")
    page.locator("h1").first.wait_for(state="attached")  # the navigation may have the same text, and is there earlier
    page.wait_for_load_state("load")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    unnamed = page.eval_on_selector_all(
        "button, select, input, textarea, a",
        "all => all.filter(one => !(one.textContent.trim() || "
        "one.ariaLabel || one.labels?.length || one.title)).length",
    )
    assert unnamed == 0
    levels = page.eval_on_selector_all("h1, h2, h3, h4", "all => all.map(one => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    small = page.eval_on_selector_all(
        ".brand, nav a, .glance a, .ways a",
        "all => all.map(one => [one.outerHTML, one.getBoundingClientRect()])"
        ".filter(([, box]) => box.height && box.height < 24).map(([html]) => html)",
    )
    assert small == []


def test_a_row_says_what_was_asked_and_called_and_search_finds_it(
    gateway: Any, model: ModelServer, opened: Opened
) -> None:
    url = gateway()
    for city in ("Oslo", "Rome"):
        model.plays(calling("get_weather", json.dumps({"city": city})))
        ask(url, model="n", messages=[{"role": "user", "content": f"The weather in {city}, {HOSTILE}?"}])
    last(url)
    page = opened(url).open("/ui")
    page.get_by_text("The weather in Oslo").first.wait_for()
    page.get_by_text("called get_weather").nth(1).wait_for()
    assert page.get_by_text("called get_weather").count() == 2
    page.keyboard.press("/")
    for words, count in (("oslo", 1), ("get_weather", 2), ("get_weather rome", 1), ("nowhere", 0)):
        page.get_by_role("searchbox").fill(words)
        page.get_by_text(f"{count} of 2", exact=True).wait_for()


def test_without_contents_a_row_says_nothing_of_what_was_asked(
    gateway: Any, model: ModelServer, opened: Opened
) -> None:
    url = gateway(inspect="metadata")
    model.plays(calling("get_weather", '{"city": "Oslo"}'))
    ask(url, model="n", messages=[{"role": "user", "content": "The heron lands."}])
    last(url)
    page = opened(url).open("/ui")
    page.get_by_text("1 call, ").wait_for()
    assert page.get_by_text("heron").count() == page.get_by_text("get_weather").count() == 0


def test_a_conversation_is_one_row_that_opens_and_leads_to_its_worst_turn(
    gateway: Any, model: ModelServer, opened: Opened
) -> None:
    url = gateway()
    history: list[dict[str, Any]] = [QUESTION]
    for answer in (said("One."), whole({"error": {"message": "out of memory"}}, status=500), said("Three.")):
        model.plays(answer)
        ask(url, model="n", messages=history)
        history += [{"role": "assistant", "content": "One."}, {"role": "user", "content": "More?"}]
    model.plays(said("Four."))
    ask(url, model="n", messages=[{"role": "user", "content": "Something else"}])
    last(url)
    page = opened(url).open("/ui")
    links = page.locator(".list a")
    page.get_by_text("4 of 4").wait_for()
    assert links.count() == 2
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("ArrowRight")
    links.nth(4).wait_for()
    page.keyboard.press("ArrowLeft")
    links.nth(4).wait_for(state="detached")
    page.get_by_role("button", name="3 requests of this conversation").click()
    links.nth(4).wait_for()
    links.nth(1).click()
    page.get_by_text("out of memory").first.wait_for()


def test_a_failed_retry_opens_on_what_the_model_wrote(gateway: Any, model: ModelServer, opened: Opened) -> None:
    url = gateway()
    model.plays(
        completion(block("get_weather", '{"town": 7}')), whole({"error": {"message": "out of memory"}}, status=500)
    )
    ask(url, tool_choice="required")
    page = opened(url).open(f"/ui/turns/{last(url)['id']}")
    page.get_by_role("tab", name="Attempt 1", selected=True).wait_for()
    page.get_by_text("out of memory").first.wait_for()
    page.get_by_text(PROBLEMS["invalid_arguments"].happened.split("`")[0]).first.wait_for()
    page.get_by_role("link", name="invalid_arguments").first.click()
    page.locator("#invalid_arguments.is-chosen").wait_for()


def test_a_tool_is_made_by_form_and_sent_with_a_system_message(
    gateway: Any, model: ModelServer, opened: Opened
) -> None:
    page = opened(gateway()).open("/ui/try")
    page.get_by_label("Model").select_option("n")
    page.get_by_text("Mode native", exact=True).wait_for()
    page.get_by_label("System message").fill("Be brief.")
    page.get_by_label("Temperature").fill("0.5")
    page.get_by_label("Max tokens").fill("70")
    page.get_by_label("Tools", exact=True).fill("")
    page.get_by_text("Edit tools as a form").click()
    page.get_by_role("button", name="Add tool").click()
    page.get_by_label("Name", exact=True).fill("find")
    page.get_by_role("button", name="Add parameter").click()
    page.get_by_label("Parameter", exact=True).fill("depth")
    page.get_by_role("combobox", name="Type").select_option("integer")
    page.get_by_label("required").check()
    model.plays(said("Yes."))
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_text("Yes.").first.wait_for()
    sent = model.asked[-1].body
    assert sent["messages"][0]["content"] == "Be brief."
    assert sent["temperature"] == 0.5
    assert 70 in (sent.get("max_tokens"), sent.get("max_completion_tokens"))
    assert sent["tools"][0]["function"]["name"] == "find"
    assert sent["tools"][0]["function"]["parameters"] == {
        "type": "object",
        "properties": {"depth": {"type": "integer"}},
        "required": ["depth"],
    }


def test_requests_come_as_they_are_made_and_thousands_stay_few_in_the_page(
    gateway: Any, model: ModelServer, opened: Opened
) -> None:
    url = gateway()
    page = opened(url).open("/ui")
    page.get_by_text("0 of 0").or_(page.get_by_text("curl")).first.wait_for()
    for number in range(60):
        model.plays(said(f"{number}"))
        ask(url, model="n")
    page.get_by_text("60 of 60").wait_for()
    assert page.locator(".list a").count() < 50


def test_filters_stand_in_the_address(gateway: Any, model: ModelServer, opened: Opened) -> None:
    url = gateway()
    model.plays(calling("get_weather", '{"city": "Oslo"}'), calling("get_weather", '{"city": "Oslo",}'), said("Hi"))
    for _ in range(3):
        ask(url, model="n")
    last(url)
    page = opened(url).open("/ui?problem=json_repaired")
    page.get_by_text("1 of 3").wait_for()
    page.get_by_label("Problem", exact=True).select_option("")
    page.get_by_text("3 of 3").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("json_rep")
    page.get_by_text("1 of 3").wait_for()
    assert "json_rep" in page.url
    page.keyboard.press("Escape")


def test_the_list_is_used_with_the_keyboard(gateway: Any, model: ModelServer, opened: Opened) -> None:
    url = gateway()
    model.plays(said("One."), said("Two."))
    for _ in range(2):
        ask(url, model="n")
    row = last(url)
    page = opened(url).open("/ui")
    page.get_by_text("2 of 2").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/ui/turns/"))
    assert page.url.endswith(row["id"])


def test_a_pause_holds_back_what_comes(gateway: Any, model: ModelServer, opened: Opened) -> None:
    url = gateway()
    model.plays(said("One."), said("Two."))
    ask(url, model="n")
    page = opened(url).open("/ui")
    page.get_by_text("1 of 1").wait_for()
    page.get_by_role("button", name="Pause").click()
    ask(url, model="n")
    waiting = page.get_by_role("button", name="Paused: 1 waiting")
    waiting.wait_for()
    waiting.click()
    page.get_by_text("2 of 2").wait_for()


OUTPUTS = {
    "mended": block("get_weather", "{'city': 'Oslo'}"),
    "said and called": "I look.\n" + block("get_weather", '{"city": "Oslo", "unit": "kelvin"}'),
    "unknown": block("get_whether", '{"city": "Oslo"}'),
    "hostile": HOSTILE + block("get_weather", json.dumps({"city": HOSTILE})),
    "long": "word " * 8_000,
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_the_coloured_view_is_the_output(gateway: Any, model: ModelServer, opened: Opened, case: str) -> None:
    url = gateway()
    model.plays(completion(OUTPUTS[case]), completion(OUTPUTS[case]))
    ask(url, messages=[{"role": "user", "content": HOSTILE}])
    row = last(url)
    turn = request(f"{url}/ui/api/turns/{row['id']}", method="GET").json
    reading = turn["attempts"][-1]["reading"]
    page = opened(url).open(f"/ui/turns/{row['id']}")
    page.locator(".piece[data-at]").first.wait_for()
    while page.locator(".source-fold").count():
        page.locator(".source-fold").first.click()
    shown = page.eval_on_selector_all(
        ".piece[data-at]", "all => all.map(one => [one.className.split(' ')[1], one.textContent])"
    )
    assert "".join(text for _, text in shown) == reading["output"].replace("\u0000", "\u0000")
    parts: dict[str, str] = {}
    for part, text in shown:
        parts[part] = parts.get(part, "") + text
    expected: dict[str, str] = {}
    for piece in reading["pieces"]:
        expected[piece["part"]] = expected.get(piece["part"], "") + piece["text"]
    assert parts == expected


def test_an_argument_shows_its_source(gateway: Any, model: ModelServer, opened: Opened) -> None:
    url = gateway()
    model.plays(completion(OUTPUTS["said and called"]))
    ask(url)
    page = opened(url).open(f"/ui/turns/{last(url)['id']}")
    argument = page.locator(".argument", has_text="kelvin").first
    argument.hover()
    lit = page.eval_on_selector_all(".piece[data-at].is-lit", "all => all.map(one => one.textContent).join('')")
    assert lit == "kelvin"


# What the server plays, what is asked for besides, and what the page has to say of it.
WHYS: dict[str, tuple[list[Answer], dict[str, Any], list[str]]] = {
    "a wrong argument": (
        [completion(block("get_weather", '{"town": 7}')), completion(block("get_weather", '{"city": "Rome"}'))],
        {},
        ["The model tried again because of", "city", "Error: this call was not run."],
    ),
    "a tool that there is not": (
        [completion(block("get_whether", '{"city": "Oslo"}'))] * 2,
        {"stream": True},
        ["An invalid call was returned", "get_whether"],
    ),
    "a server that fails": (
        [whole({"error": {"message": "out of memory"}}, status=500)],
        {"model": "n"},
        ["The upstream", "out of memory"],
    ),
    "an answer that was cut": (
        [calling("get_weather", '{"city": "Os', finish="length")],
        {"model": "n", "stream": True},
        ["The model was cut off"],
    ),
    "a request that cannot be": (
        [],
        {"tool_choice": "sometimes"},
        ["The gateway refused the request", "sometimes", "tool_choice"],
    ),
}


@pytest.mark.parametrize("case", WHYS)
def test_why_a_call_failed_is_one_click_from_the_list(
    gateway: Any, model: ModelServer, opened: Opened, case: str
) -> None:
    answers, fields, expected = WHYS[case]
    url = gateway()
    model.plays(*answers)
    ask(url, **fields)
    last(url)
    page = opened(url).open("/ui")
    page.locator(".list a").first.click()
    for words in expected:
        shown = page.get_by_text(words).first
        shown.wait_for()
        assert shown.evaluate("one => one.getBoundingClientRect().bottom <= innerHeight"), words


def test_a_turn_is_run_again_and_compared(gateway: Any, opened: Opened) -> None:
    url = gateway()
    ask(url, model="s")
    page = opened(url).open(f"/ui/turns/{last(url)['id']}")
    page.get_by_role("button", name="Run again").click()
    page.get_by_label("Dialect").select_option("qwen3_coder")
    page.get_by_role("button", name="Run and compare").click()
    page.wait_for_url(re.compile(r"with="))
    page.get_by_text("qwen3_coder").first.wait_for()
    assert last(url)["again_of"]


def test_keys_are_asked_for_and_what_was_said_is_the_operators(
    gateway: Any, model: ModelServer, opened: Opened
) -> None:
    url = gateway(KEYS, inspect="full")
    model.plays(said("The heron lands."))
    ask(url, ANNA, model="n")
    row = last(url, OPERATOR)
    for key, sees in ((ANNA, False), (OPERATOR, True)):
        watched = opened(url)
        page = watched.open(f"/ui/turns/{row['id']}")
        field = page.get_by_label("Key", exact=True)
        field.fill("cw-wrong")
        page.keyboard.press("Enter")
        page.get_by_text("does not know this key").first.wait_for()
        field.fill(key)
        page.keyboard.press("Enter")
        page.get_by_text("mode · dialect").first.wait_for()
        if sees:
            page.get_by_text("The heron lands.").first.wait_for()
        else:
            page.get_by_text("operator").first.wait_for()
            assert page.get_by_text("The heron lands.").count() == 0
        watched.forget_refused()


def test_an_output_is_read_on_the_bench_and_kept_as_a_file(gateway: Any, opened: Opened, tmp_path: Path) -> None:
    page = opened(gateway()).open("/ui/read")
    page.get_by_role("textbox", name="Output of the model").fill(block("get_weather", "{'city': 'Oslo'}"))
    page.get_by_text("json_repaired").first.wait_for()
    with page.expect_download() as coming:
        page.get_by_role("button", name="Export").click()
    file = tmp_path / "state.json"
    coming.value.save_as(file)
    state = json.loads(file.read_text())
    assert state["callwright_reading"] == 1
    assert json.loads(state["read"]["calls"][0]["arguments"]) == {"city": "Oslo"}
    page.get_by_role("textbox", name="Output of the model").fill("Nothing.")
    page.get_by_text("json_repaired").first.wait_for(state="detached")
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Import").click()
    choosing.value.set_files(file)
    page.get_by_text("json_repaired").first.wait_for()


def test_a_playback_ends_where_the_whole_is(gateway: Any, opened: Opened) -> None:
    page = opened(gateway()).open("/ui/read")
    page.locator(".piece[data-at]").first.wait_for()
    whole_text = "".join(page.locator(".piece[data-at]").all_text_contents())
    page.get_by_role("button", name="Playback").click()
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("End")
    page.wait_for_function(
        "whole => [...document.querySelectorAll('.piece[data-at]')].map(one => one.textContent).join('') === whole",
        arg=whole_text,
    )
    page.keyboard.press("Home")
    assert len("".join(page.locator(".piece[data-at]").all_text_contents())) < len(whole_text)


def test_a_model_is_tried_with_tools(gateway: Any, opened: Opened) -> None:
    url = gateway()
    page = opened(url).open("/ui/try")
    page.get_by_label("Model").select_option("s")
    page.get_by_role("button", name="Send", exact=True).click()
    page.locator(".outputs").wait_for()
    page.get_by_role("button", name=re.compile("Send output")).click()
    until(lambda: len(request(url + "/ui/api/turns", method="GET").json["rows"]) == 2)
    page.locator(".round").nth(1).wait_for()


def test_quality_tells_what_ended_how(gateway: Any, model: ModelServer, opened: Opened) -> None:
    url = gateway()
    model.plays(calling("get_weather", '{"city": "Oslo"}'), calling("get_weather", '{"city": "Oslo",}'))
    for _ in range(2):
        ask(url, model="n")
    last(url)
    page = opened(url).open("/ui/quality")
    page.get_by_role("link", name="json_repaired").first.click()
    page.get_by_text("1 of 2").wait_for()


def test_spend_shows_costs_by_key_and_model_and_the_budgets(gateway: Any, model: ModelServer, opened: Opened) -> None:
    price, budget = PriceConfig(input=3.0, output=15.0), BudgetConfig(tokens_per_day=36)
    keys = (*KEYS[:1], KeyConfig(name="anna", sha256=hash_of(ANNA), budget=budget))
    url = gateway(keys, (ModelConfig(name="n", upstream=model.url, price=price),))
    model.plays(said("Hi"))
    assert ask(url, ANNA, model="n").status == 200
    watched = opened(url)
    page = watched.open("/ui/spend")
    page.get_by_label("Key", exact=True).fill(OPERATOR)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Spend").wait_for()
    page.get_by_role("cell", name="0.000138").first.wait_for()
    page.get_by_text("key anna, per day").wait_for()
    page.get_by_role("cell", name="50 %").wait_for()
    page.get_by_text("Model", exact=True).click()
    page.get_by_role("rowheader", name="n", exact=True).wait_for()
    watched.forget_refused()


def test_files_of_records_are_shown_in_the_same_pages(opened: Opened, model: ModelServer, tmp_path: Path) -> None:
    folder = tmp_path / "turns"
    models = (ModelConfig(name="m", upstream=model.url, mode="raw", dialect="hermes"),)
    recording = Gateway(Config(models=models, record=RecordConfig(dir=str(folder))))
    model.plays(completion(block("get_weather", "{'city': 'Oslo'}")))
    ask(recording.url)
    recording.stop()
    shown = Gateway(Config(server=ServerConfig(inspect="off")), records=RecordedTurns(folder.glob("*"), 10))
    try:
        page = opened(shown.url).open("/ui")
        page.get_by_text("1 of 1").wait_for()
        page.locator(".list a").first.click()
        page.get_by_text("json_repaired").first.wait_for()
        assert page.get_by_role("button", name="Run again").count() == 0
    finally:
        shown.stop()


def test_the_apis_of_others_are_rows_too(gateway: Any, model: ModelServer, opened: Opened) -> None:
    url = gateway()
    model.plays(said("One."))
    request(url + RESPONSES, {"model": "n", "input": "Hi", "store": False})
    last(url)
    opened(url).open("/ui?q=v1/responses").get_by_text("1 of 1").wait_for()
