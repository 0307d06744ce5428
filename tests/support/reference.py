"""The parts of the documentation that the code says itself: tables of settings and fields, the page of the commands.

`scripts/reference` writes them; a test compares. A table of settings stands below a line
`<!-- settings: ServerConfig -->` of any page, and is as long as its lines begin with `|`. Behind the name may stand
those of its settings that are meant.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import NODEFAULT, Struct, inspect

from callwright import problems
from callwright.cli import main
from callwright.conform.checks.faults import DIALECTS, NATIVE, fault_checks
from callwright.conform.run import CHECKS as CONFORM_CHECKS
from callwright.gateway.config.schema import meanings, tables
from callwright.settings.expiry import Expiry
from tests.support.api_page import api_page
from tests.support.known_templates import MARK, table_of_templates
from tests.support.openai_pages import fields_page
from tests.support.paths import ROOT

DOCS = ROOT / "docs"
TABLE = re.compile(r"(?<=<!-- settings: )(?P<name>\w+)(?P<fields>[\w ]*)(?P<mark> -->\n\n)(?:\|.*\n)*")
CHECKS = "<!-- checks -->\n\n"
PROBLEM_TABLE = re.compile(r"(?<=<!-- problems: )(?P<name>\w+)(?P<mark> -->\n\n)(?:\|.*\n)*")
UNITS = {"s": "seconds", "days": "days", "bytes": "bytes", "chars": "characters", "tokens": "tokens"}


def pages() -> dict[Path, str]:
    """The pages that hold such parts, as they should be."""
    written = {DOCS / "cli.md": command_page(), DOCS / "api.md": api_page()}
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if TABLE.search(text):
            written[path] = TABLE.sub(_filled, text)
        if PROBLEM_TABLE.search(text):
            written[path] = PROBLEM_TABLE.sub(_explained, written.get(path, text))
        if MARK in text:
            before, _, behind = written.get(path, text).partition(MARK)
            rest = re.sub(r"\A(?:\|.*\n)*", "", behind)
            written[path] = before + MARK + table_of_templates() + rest
        if CHECKS in text:
            before, _, after = written.get(path, text).partition(CHECKS)
            written[path] = before + CHECKS + check_table() + re.sub(r"\A(?:\|.*\n)*", "", after)
    fields = DOCS / "openai-fields.md"
    return {**written, fields: fields_page(fields.read_text(encoding="utf-8"))}


def _filled(found: re.Match[str]) -> str:
    table = settings_table(found["name"], found["fields"].split())
    return found["name"] + found["fields"] + found["mark"] + table


def check_table() -> str:
    """The checks of `callwright conform`, with the pages that they are from."""
    rows = [
        (f"`{check.name}`", check.title, ", ".join(f"[{wire}]({page})" for wire, page in check.sources.items()))
        for check in (*CONFORM_CHECKS, *fault_checks((NATIVE, *DIALECTS)))
    ]
    return table(("id", "meaning", "of the API"), rows)


def _explained(found: re.Match[str]) -> str:
    rows = [
        (f"`{kind}`", one.happened + (f" See [{_title(one.page)}]({one.page})." if one.page else ""), one.next_step)
        for kind, one in getattr(problems, found["name"].upper()).items()
    ]
    return found["name"] + found["mark"] + table(("name", "what happened", "what to do"), rows)


def _title(page: str) -> str:
    """The page of a link in words: of `apis.md#web-search` it is `web search`."""
    return page.rpartition("#")[2].removesuffix(".md").replace("-", " ")


def shown_settings(text: str) -> list[tuple[str, str]]:
    """The settings that a page has in its tables: their struct, and their name."""
    marks = [(found["name"], found["fields"].split()) for found in TABLE.finditer(text)]
    return [(name, field) for name, fields in marks for field in fields or tables()[name].__struct_fields__]


def settings_table(name: str, names: Sequence[str] = ()) -> str:
    """The settings of a struct, or some of them in this order, as Markdown."""
    struct = tables()[name]
    told = meanings(struct)
    known = {field.name: field for field in fields_of(struct)}
    rows = [
        (f"`{name}`", takes(known[name].type, unit_of(name)), default(known[name]), told[name])
        for name in names or known
    ]
    return table(("name", "takes", "default", "meaning"), rows)


def fields_of(struct: type[Struct]) -> tuple[inspect.Field, ...]:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return info.fields


def unit_of(name: str) -> str:
    """The unit of a number, which its name ends with."""
    return UNITS.get(name.rpartition("_")[2], "number")


def takes(type_: inspect.Type, unit: str) -> str:
    """What can stand there, in words."""
    match type_:
        case inspect.BoolType():
            return "`true` or `false`"
        case inspect.StrType():
            return "text"
        case inspect.IntType(gt, ge, lt, le) | inspect.FloatType(gt, ge, lt, le):
            words = {"above": gt, "at least": ge, "below": lt, "at most": le}
            return ", ".join((unit, *(f"{word} {bound}" for word, bound in words.items() if bound is not None)))
        case inspect.LiteralType(values):
            return ", ".join(f"`{value}`" for value in sorted(values, key=str))
        case inspect.DictType():
            return "table"
        case inspect.CustomType(cls) if cls is Expiry:
            return "date, or date-time with an offset"
        case inspect.StructType(cls):
            return f"table, [below](#{anchor(cls)})"
        case inspect.ListType(inspect.StructType(cls)) | inspect.VarTupleType(inspect.StructType(cls)):
            return f"tables, [below](#{anchor(cls)})"
        case inspect.ListType(item) | inspect.VarTupleType(item):
            return f"list of {'lists of texts' if isinstance(item, inspect.ListType) else 'texts'}"
        case inspect.UnionType(types):
            return " or ".join(takes(each, unit) for each in types if not isinstance(each, inspect.NoneType))
    raise AssertionError(f"no words for {type_}")


def anchor(struct: type[Struct]) -> str:
    """The heading of a struct's section, as links name it: that of the table which its docstring begins with."""
    found = re.match(r"`\[+([\w.]+)\]+`", struct.__doc__ or "")
    assert found, f"{struct.__name__} does not begin with its table"
    return found[1].replace(".", "")


def default(field: inspect.Field) -> str:
    """What counts where nothing stands."""
    value: Any = field.default
    if field.default_factory is not NODEFAULT:
        value = field.default_factory()
    if field.required:
        return "required"
    if value is None or value in ("", (), [], {}):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return "`[" + ", ".join(f'"{each}"' for each in value) + "]`"
    size = f" ({value >> 20:,} MiB)" if field.name.endswith("_bytes") else ""
    return f"`{value}`{size}"


# The files that the examples of the commands name, for who tries them.
FILES = {
    "tools.json": """[{"type": "function", "function": {"name": "get_time",
  "parameters": {"type": "object", "properties": {"tz": {"type": "string"}}, "required": ["tz"]}}}]
""",
    "tools.py": """import callwright


@callwright.tool
def get_weather(city: str) -> str:
    \"\"\"Weather of a city.\"\"\"
    return f"14 degrees in {city}"
""",
    "outputs.jsonl": r"""{"output": "<tool_call>{\"name\": \"get_time\", \"arguments\": {\"tz\": \"UTC\"}}</tool_call>"}
""",
    "rows.jsonl": r"""{"completion": "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>"}
""",
    "chats.jsonl": """{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}]}
""",
    "callwright.toml": """[[models]]
name = "simulated"
upstream = "simulated"
mode = "raw"
dialect = "harmony"
""",
}
# Examples that a plain machine cannot run name one of these.
ELSEWHERE = re.compile(
    r"localhost|[.]gguf|[.]parquet|server[.]py|sets[.]jsonl|turns|fleet[.]toml|[.]yaml|launch(?!.*--print)"
)


def command_page() -> str:
    """docs/cli.md: every command with what it takes."""
    lines = [
        "# Commands",
        "",
        "Every command with its options. For example, which dialect does a model speak?",
        "",
        "```sh",
        "callwright dialects --model Qwen/Qwen3-Coder-30B-A3B-Instruct",
        "```",
        "",
        "```text",
        "qwen3_coder  (the name 'Qwen/Qwen3-Coder-30B-A3B-Instruct' matches 'qwen-3-coder')",
        "```",
        "",
        "`callwright COMMAND --help` prints the same as this page, for the version that you have installed.",
        "",
        "The exit status is 0 if all went well, 2 for a mistake that you can correct (an option, a file), and",
        "1 for everything else.",
        "",
        "## Completion",
        "",
        "Your shell can complete commands, options and the names of dialects. Add one line to its configuration:",
        "",
        "| shell | file | line |",
        "| --- | --- | --- |",
        *(
            f'| {shell} | `~/.{shell}rc` | `eval "$(_CALLWRIGHT_COMPLETE={shell}_source callwright)"` |'
            for shell in ("bash", "zsh")
        ),
        "| fish | `~/.config/fish/config.fish` | `_CALLWRIGHT_COMPLETE=fish_source callwright \\| source` |",
        "",
        "## Files of the examples",
        "",
        "The examples on this page use these files:",
    ]
    for name, text in FILES.items():
        lines += ["", f"`{name}`:", "", f"<!-- file: {name} -->"]
        lines += [f"```{LANGUAGES[Path(name).suffix]}", *text.splitlines(), "```"]
    with click.Context(main, info_name="callwright", **main.context_settings) as root:
        for name in main.list_commands(root):
            _, command, _ = main.resolve_command(root, [name])  # loaded, which `get_command` is not
            assert command is not None
            lines += ["", *described(command, click.Context(command, info_name=name, parent=root))]
    return "\n".join(lines) + "\n"


LANGUAGES = {".json": "json", ".jsonl": "json", ".py": "python", ".toml": "toml"}


def described(command: click.Command, context: click.Context, level: int = 2) -> Iterator[str]:
    """A command's section, and below it those of its subcommands."""
    text, _, examples = (command.help or "").partition("\b\n")
    yield f"{'#' * level} `{context.command_path}`"
    yield ""
    yield " ".join(text.split())
    yield ""
    yield "```"
    yield " ".join(("usage:", context.command_path, *command.collect_usage_pieces(context)))
    yield "```"
    lines = textwrap.dedent(examples.partition("\n")[2]).strip()
    # A line that is indented belongs to the one before it.
    single = re.split(r"\n(?=\S)", lines) if lines else []
    yield from shown([each for each in single if not ELSEWHERE.search(each)])
    yield from shown([each for each in single if ELSEWHERE.search(each)], "they need servers, files or programs")
    rows = [option(each, context) for each in command.params if isinstance(each, click.Option)]
    if rows:
        yield ""
        yield table(("option", "meaning"), rows).rstrip("\n")
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield ""
            yield from described(inner, click.Context(inner, info_name=name, parent=context), level + 1)


def shown(examples: Sequence[str], why_not: str = "") -> Iterator[str]:
    """A block of examples, which is run unless it says why not."""
    if examples:
        yield ""
        if why_not:
            yield f"<!-- not run: {why_not} -->"
        yield "```sh"
        yield from (line for example in examples for line in example.splitlines())
        yield "```"


def option(given: click.Option, context: click.Context) -> tuple[str, str]:
    record = given.get_help_record(context)
    assert record is not None
    return f"`{record[0]}`", " ".join(record[1].split())


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [heads, ("---",) * len(heads), *rows]
    return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)


def write() -> None:
    """Write what is not as it should be."""
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"Wrote {path.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    write()
