"""What long outputs cost that repeat one thing: how the time grows when the output is four times longer.

    python bench/floods.py [--dialect hermes] [--length 20000] [--all] [--limit 6]

Each flood is read in 4-character pieces and whole. What is linear takes four times as long for four times the text,
what is quadratic sixteen times. Printed are the floods beyond the limit (or all of them) and the worst of each dialect;
the exit status is 1 when there is one beyond the limit. One process; what comes near the limit is measured again, the
best of several. Floods that take less than 50 ms at the larger length are not compared, as there the noise is larger
than the growth.
"""

import argparse
import sys
import time

from callwright import Parser


def tool(name: str, **properties: object) -> dict[str, object]:
    """A function tool with these properties."""
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


STRING = {"type": "string"}
TOOLS = [
    tool("ping"),
    tool("roll_dice", sides={"type": "integer"}),
    tool("take_note", title=STRING, body=STRING),
    tool("ledger", lines={"type": "array", "items": {"type": "object"}}),
    tool("load_json", text=STRING),
    tool("python", code=STRING),
]
PING = '{"name": "ping", "arguments": {}}'
BLOCK = f"<tool_call>{PING}</tool_call>"
HERMES_NOTE = '<tool_call>{"name": "take_note", "arguments": {"title": "'
LEDGER = '<tool_call>{"name": "ledger", "arguments": {"lines": ['
FIRST = '{"tool": "ping", "arguments": {}}\n'

BOTH: dict[str, tuple[str, str, str]] = {
    "prose": ("", "The tide comes in. ", ""),
    "prose in a thought": ("<think>", "The tide comes in. ", ""),
    "blanks": ("", " ", ""),
    "line feeds": ("", "\n", ""),
    "blanks in a text": ("x", " ", "x"),
    "blanks in a thought": ("<think>", " ", ""),
    "braces in prose": ("", "{x} ", ""),
    "open braces": ("", "{", ""),
    "open brackets": ("", "[", ""),
    "objects in objects": ("", '{"a":', ""),
    "quotes": ("", '"', ""),
    "text that looks like JSON": ("", '"a": "x}x}x}", ', ""),
    "brackets of tags": ("", "<", ""),
    "backticks": ("", "`", ""),
    "single backticks": ("", "` ", ""),
    "fence marks": ("", "``` ", ""),
    "tildes": ("", "~", ""),
    "fences": ("", "```json\n", ""),
    "fences with a brace": ("", "```json\n{\n```\n", ""),
    "an open fence": ("```\n", "some text\n", ""),
    "close tags of a thought": ("", "a</think>", ""),
    "thoughts": ("", "<think>a</think>", ""),
    "end tokens": ("", "<|im_end|> ", ""),
    "bare calls": ("", FIRST, ""),
    "bare calls with text between": ("", FIRST + "And then.\n", ""),
    "fenced calls": ("", f"```json\n{FIRST}```\n", ""),
    "records": ("", '{"tool": "ping", "output": 1} x ', ""),
    "quoted calls": ("", '> {"tool": "ping"}\n', ""),
    "a list of calls": ("[", '{"tool": "ping"},', '{"tool": "ping"}]'),
    "closers behind a call": (FIRST, "}", ""),
    "blanks behind a call": (FIRST, " ", "x"),
    "open braces behind a call": (FIRST, "{ x ", ""),
    "open fences behind a call": (FIRST, '\n```json\n{"a\n```', ""),
    "code behind a call": (FIRST, "`x``y", ""),
    "a string": ('{"tool": "take_note", "arguments": {"title": "', "code; ", ""),
    "broken strings": ('{"tool": "take_note", "arguments": {"title": "', "\" '", ""),
}
# What is held and judged: the same code in each dialect of prose.
HELD: dict[str, tuple[str, str, str]] = {
    "calls with data behind each": ("", FIRST + 'They say:\n{"a": 1}\n', ""),
    "calls in sentences": ("", "A body {FIRST} is sent. ".replace("{FIRST}", FIRST.strip()), ""),
    "calls in quotation marks": ("", f'He wrote "{FIRST.strip()}" there. ', ""),
    "calls under headings": ("", f"# A call\n{FIRST}More.\n", ""),
    "calls with labels in a list": ("", f"- one: {FIRST}", ""),
    "calls with questions between": ("", f"{FIRST}And now?\n", ""),
    "calls of unknown tools": ("", FIRST.replace("ping", "pong"), ""),
    "calls of unknown tools with words between": ("", FIRST.replace("ping", "pong") + "Or.\n", ""),
    "calls in other marks": ("", f"<function_call>{FIRST}</function_call>\n", ""),
    "marks of other formats": ("", "[TOOL_REQUEST]", ""),
    "open marks of other formats with a brace": ("", '[TOOL_REQUEST]{"a": "', ""),
    "closers of other marks behind a call": (FIRST, "[END_TOOL_REQUEST]", "x"),
    "unclosed objects in fences": ("", '```json\n{"tool": "ping", "arguments": {\n```\nx\n', ""),
    "lists in a list of calls": ("[", '[{"tool": "ping"}],', '[{"tool": "pong"}]]'),
    "words that deny, before calls": ("", f"I do not no ne pas never not call. {FIRST}", ""),
    "words without an end before a call": ("", "not nicht no ne I have been ", "\n" + FIRST),
    "words without an end behind a call": (FIRST, "if let me know when the file ", ""),
    "full stops before a call": ("", ". ", FIRST),
    "brackets before calls": ("", f"( [ {FIRST}", ""),
}
HERMES: dict[str, tuple[str, str, str]] = {
    "blocks": ("", BLOCK + "\n", ""),
    "blocks that are never closed": ("", f"<tool_call>{PING}\n", ""),
    "blocks in sentences": ("", f"Write {BLOCK} there. ", ""),
    "blocks behind words": ("", f"And {BLOCK}\n", ""),
    "blocks behind examples": ("", f"For example:\n{BLOCK}\nx\n", ""),
    "closed objects behind words": ("", "x <tool_call>{}", ""),
    "blanks behind a block behind words": ("x " + BLOCK, " ", "x"),
    "blocks that are no JSON": ("", "<tool_call>\nx\n</tool_call>\n", ""),
    "blocks with nothing readable": ("", '<tool_call>{"x": }</tool_call>\n', ""),
    "open tags": ("", "<tool_call>", ""),
    "open tags on lines": ("", "<tool_call>\n", ""),
    "open tags with a brace": ("", "<tool_call>{", ""),
    "open tags with a backtick": ("", "<tool_call>`", ""),
    "close tags": ("", "</tool_call>", ""),
    "halves of tags": ("", "<tool_", ""),
    "blanks before a block": ("", " ", BLOCK),
    "blanks behind a block": (BLOCK, " ", ""),
    "blanks in a block": ("<tool_call>", " ", "x"),
    "blanks in the head of a call": ("<tool_call>{", " ", ""),
    "a name": ('<tool_call>{"name": "', "a", ""),
    "a string in a block": (HERMES_NOTE, "code; x < y ", ""),
    "escapes in a string": (HERMES_NOTE, '\\"', ""),
    "backslashes in a string": (HERMES_NOTE, "\\", ""),
    "brackets of tags in a string": (HERMES_NOTE, "<", ""),
    "halves of tags in a string": (HERMES_NOTE, "</tool_call", ""),
    "close tags in a string": (HERMES_NOTE, "</tool_call>", ""),
    "tags in a string": (HERMES_NOTE, "</tool_call>\n<tool_call>", ""),
    "blanks behind a tag in a string": (HERMES_NOTE + "</tool_call>", " ", ""),
    "objects in arguments": (LEDGER, '{"a": 1},', ""),
    "brackets in arguments": (LEDGER, "[", ""),
    "brackets of tags in arguments": (LEDGER, "<", ""),
    "halves of tags in arguments": (LEDGER, "</tool_call", ""),
    "objects in a block": ("<tool_call>", PING + "\n", "</tool_call>"),
    "names in a block": ("<tool_call>", '{"name": "ping"}', "</tool_call>"),
    "a list in a block": ("<tool_call>[", '{"name": "ping"},', '{"name": "ping"}]</tool_call>'),
    "brackets in a block": ("<tool_call>", "[", ""),
    "blanks behind the arguments": (f"<tool_call>{PING}", " ", "x</tool_call>"),
    "braces behind the arguments": (f"<tool_call>{PING}", "} ", "x</tool_call>"),
    "members behind the arguments": ('<tool_call>{"name": "ping", "arguments": {}', ', "a": 1', "</tool_call>"),
    "text behind the arguments": (f"<tool_call>{PING}", "x y ", "</tool_call>"),
    "blanks in a fence in a block": ("<tool_call>```{", " ", "}```</tool_call>"),
    "line feeds in a fence in a block": ("<tool_call>```json\n{", "\n", "x"),
    "drafts in an open thought": ("<think>", BLOCK, ""),
    "drafts with words in an open thought": ("<think>", f"Or {BLOCK} ", ""),
    "drafts in a thought": ("<think>", BLOCK, "</think>"),
    "open tags in a thought": ("<think>", "<tool_call>{", ""),
    "thoughts and calls": ("", f"<think>{BLOCK}", ""),
}
CALL = "<|channel|>commentary to=functions.%s <|constrain|>json<|message|>"
HARMONY_NOTE = CALL % "take_note" + '{"title": "'
PARALLEL = '<|channel|>commentary to=multi_tool_use.parallel json<|message|>{"tool_uses": ['

HARMONY: dict[str, tuple[str, str, str]] = {
    "blanks before anything": ("", " ", ""),
    "line feeds before anything": ("", "\n", ""),
    "text without a header": ("", "word ", ""),
    "brackets without a header": ("", "<", ""),
    "blanks between messages": ("<|channel|>final<|message|>Yes.<|end|>", " ", ""),
    "stop tokens": ("<|channel|>final<|message|>Yes.", "<|end|>", ""),
    "start tokens": ("", "<|start|>", ""),
    "channel tokens": ("", "<|channel|>", ""),
    "messages": ("", "<|channel|>final<|message|>a<|end|><|start|>assistant", ""),
    "empty messages": ("", "<|channel|><|message|><|end|>", ""),
    "a name": ("<|channel|>commentary to=functions.", "a", ""),
    "a name with dots": (" to=", "a.", "<|channel|>commentary<|message|>{}<|call|>"),
    "reasoning": ("<|channel|>analysis<|message|>", "word ", ""),
    "begins of tokens in reasoning": ("<|channel|>analysis<|message|>", "<|en", ""),
    "an answer": ("<|channel|>final<|message|>", "word ", ""),
    "blanks in an answer": ("<|channel|>final<|message|>", " ", ""),
    "braces in an answer": ("<|channel|>final<|message|>", "{", ""),
    "an answer that begins as arguments": ('<|channel|>final<|message|>{"sides": ', "1", ""),
    "stop tokens in an answer that begins as arguments": ('<|channel|>final<|message|>{"title": "', "<|end|>", ""),
    "blanks before arguments": (CALL % "take_note", " ", ""),
    "a string": (HARMONY_NOTE, "word ", ""),
    "brackets in a string": (HARMONY_NOTE, "<", ""),
    "backslashes in a string": (HARMONY_NOTE, "\\", ""),
    "stop tokens in a string": (HARMONY_NOTE, "<|end|>", ""),
    "seams of messages in a string": (HARMONY_NOTE, "<|end|><|start|>", ""),
    "stop tokens with blanks in a string": (HARMONY_NOTE, "<|end|> ", ""),
    "blanks behind a stop token in a string": (HARMONY_NOTE + "<|end|>", " ", ""),
    "objects in objects": (CALL % "take_note", '{"a":', ""),
    "brackets in arguments": (CALL % "take_note" + "{", "<", ""),
    "halves of tokens in arguments": (CALL % "take_note" + "{", "<|end|", ""),
    "raw arguments": (CALL % "python", "x ", ""),
    "text behind arguments": (CALL % "ping" + "{}", "x ", ""),
    "text behind a call": (CALL % "ping" + "{}<|call|>", "x ", ""),
    "stop tokens behind a call": (CALL % "ping" + "{}<|call|>", "<|call|>", ""),
    "start tokens behind a call": (CALL % "ping" + "{}<|call|>", "<|start|>", ""),
    "calls": ("", CALL % "ping" + "{}<|call|><|start|>assistant", ""),
    "a message in a tool's name": ("<|start|>ping<|message|>", "x ", ""),
    "stop tokens in the object of a tool's message": ('<|start|>ping<|message|>{"a": "', "<|end|>", ""),
    "several calls in one": (PARALLEL, '{"recipient_name": "ping", "parameters": {"a": 1}},', "{}]}<|call|>"),
    "several calls in one that are calls": (
        PARALLEL,
        '{"recipient_name": "ping", "parameters": {}},',
        '{"recipient_name": "ping"}]}<|call|>',
    ),
    "the name of one of several calls": (PARALLEL + '{"recipient_name": "', "a.", '", "parameters": {}}]}<|call|>'),
    "stripped text": ("analysisThe ", "word ", ""),
    "stripped headers": ("analysisThe ", "assistantfinal", ""),
    "stripped headers with blanks": ("", "assistantanalysis" + " " * 150 + "x", ""),
    "stripped calls": ("", "assistantcommentary to=functions.ping json{}", ""),
    "stripped arguments": ("assistantcommentary to=functions.take_note json{", "<", ""),
    "blanks behind a stripped header": ("assistantcommentary", " ", ""),
}

FLOODS = {
    "harmony": HARMONY,
    "hermes": BOTH | HERMES,
    "json": BOTH | HELD,
}


def main() -> int:
    """Measure and print; say whether all are within the limit."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--dialect", default="", choices=["", *FLOODS], help="only this one")
    options.add_argument("--length", type=int, default=20_000, help="characters of the shorter output")
    options.add_argument("--limit", type=float, default=6.0, help="the growth for four times the text that is too much")
    options.add_argument("--all", action="store_true", help="print each flood")
    given = options.parse_args()
    beyond = 0
    for dialect, floods in FLOODS.items():
        if given.dialect not in ("", dialect):
            continue
        worst = (0.0, "none takes long enough to be compared", 0.0)
        for title, flood in floods.items():
            for size, how in ((4, "in pieces"), (given.length * 8, "whole")):
                taken = seconds(dialect, flood, 4 * given.length, size, 1)
                growth = 0.0
                if taken > 0.05:
                    growth = taken / seconds(dialect, flood, given.length, size, 1)
                for again in (2, 5):
                    if growth > given.limit * 0.8:
                        taken = min(taken, seconds(dialect, flood, 4 * given.length, size, again))
                        growth = taken / seconds(dialect, flood, given.length, size, 1 + again)
                if growth:
                    worst = max(worst, (growth, f"{title}, {how}", taken))
                beyond += growth > given.limit
                if given.all or growth > given.limit:
                    print(f"  {dialect:8} {title + ', ' + how:70} {taken * 1e3:8.1f} ms {growth:6.1f}x", flush=True)
        print(
            f"{dialect:8} {len(floods)} floods, the worst growth {worst[0]:.1f}x ({worst[1]}: {worst[2] * 1e3:.0f} ms)"
        )
    return beyond > 0


def seconds(dialect: str, flood: tuple[str, str, str], length: int, size: int, times: int) -> float:
    """What it takes to read a flood of some length in pieces of some size: the best of some times."""
    begin, unit, end = flood
    output = begin + unit * (length // len(unit)) + end
    found = float("inf")
    for _ in range(times):
        parser = Parser(dialect, tools=TOOLS)
        started = time.process_time()
        for at in range(0, len(output), size):
            parser.feed(output[at : at + size])
        parser.finish()
        found = min(found, time.process_time() - started)
    return found


if __name__ == "__main__":
    sys.exit(main())
