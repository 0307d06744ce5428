"""House rules: what keeps the code readable is held by tests."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import callwright
from callwright.dialects.base import dialect_names, get_dialect
from callwright.events import PROBLEM_KINDS
from callwright.upstreams.simulated.faults import FAULTS

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "callwright"
MAX_LINES = 500
# What the runtime adds to the package's public names.
RUNTIME = tuple(callwright._RUNTIME)

# Every module belongs to one of these rows, by its first name, and imports from its own row and those above only.
NOT_OURS = (".venv", ".git", ".mypy", ".ruff", ".pytest", ".hypothesis", ".clients", ".oracle")
LAYERS = (
    ("errors", "events", "jsontext", "settings", "batches", "kept"),
    ("grammar",),
    ("conversation", "source", "prompt"),
    ("jsonescape", "jsonspan", "jsonquote", "jsontree"),
    ("jsonscalar", "custom"),
    ("lenient",),
    ("schema", "history"),
    ("toolset", "jsonfind", "coerce", "aliases"),
    ("forms", "repair"),
    ("fitting",),
    ("meant",),
    ("recover", "live"),
    ("live_input", "toolsearch"),
    ("dialects",),
    ("constraint",),
    ("parser", "check", "collect", "guarantee", "detection"),
    ("wire",),
    ("upstreams",),
    ("native", "observing"),
    ("turn", "tracing"),
    ("api", "response_template"),
    ("processes",),
    ("bulk", "records"),
    ("agent",),
    ("probing",),
    ("gateway",),
    ("cli",),
)


def modules() -> list[str]:
    """All modules, by their name inside the package."""
    found = pkgutil.walk_packages([str(SOURCES)], "callwright.")
    return [module.name.removeprefix("callwright.") for module in found]


def path_of(module: str) -> Path:
    base = SOURCES / module.replace(".", "/")
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


def row(module: str) -> int:
    for number, names in enumerate(LAYERS):
        if module.split(".")[0] in names:
            return number
    raise AssertionError(f"{module} belongs to no layer: name its place in LAYERS")


def imports(module: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(path_of(module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("callwright."):
            yield node.module.removeprefix("callwright.")


@pytest.mark.parametrize("module", modules())
def test_no_module_imports_upward(module: str) -> None:
    upward = [other for other in imports(module) if row(other) > row(module)]
    assert not upward, f"{module} imports {upward} from a layer above it"


@pytest.mark.parametrize("module", modules())
def test_modules_stay_short(module: str) -> None:
    assert len(path_of(module).read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize("module", modules())
def test_modules_say_what_they_are_for_and_what_is_public(module: str) -> None:
    loaded = importlib.import_module(f"callwright.{module}")
    assert loaded.__doc__
    if path_of(module).name == "__init__.py" and not hasattr(loaded, "__all__"):
        return
    assert list(loaded.__all__) == sorted(loaded.__all__, key=natural)
    assert all(hasattr(loaded, name) for name in loaded.__all__)
    assert not [name for name in loaded.__all__ if name.startswith("_")]


def natural(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as ruff sorts `__all__`."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name


def test_the_core_does_no_io_and_reads_no_clock() -> None:
    banned = {"asyncio", "aiohttp", "time", "random", "secrets", "socket", "logging", "datetime", "uuid", "os"}
    for module in modules():
        if row(module) > row("collect"):
            continue
        text = path_of(module).read_text(encoding="utf-8").replace("from random import Random\n", "")  # which is seeded
        names = re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)
        assert not banned & set(names), module


def test_the_core_imports_without_the_gateways_packages() -> None:
    wanted = {"aiohttp", "starlette", "uvicorn", "click"}
    for module in modules():
        if row(module) <= row("wire") or row(module) == row("api"):
            names = re.findall(r"^\s*(?:import|from) (\w+)", path_of(module).read_text(encoding="utf-8"), re.MULTILINE)
            assert not wanted & set(names), module


@pytest.mark.parametrize("name", dialect_names())
def test_every_dialect_has_the_whole_face_and_its_vectors(name: str) -> None:
    dialect = get_dialect(name)
    for attribute in ("aliases", "models", "source", "stops", "stop_token_ids", "Options"):
        assert hasattr(dialect, attribute), attribute
    for function in ("render", "messages", "parse", "write"):
        assert callable(getattr(dialect, function))
    assert (ROOT / "tests" / "vectors" / f"{name}.txt").exists()
    for alias in dialect.aliases:
        assert get_dialect(alias) is dialect


def test_no_two_dialects_share_a_name() -> None:
    names = [word for name in dialect_names() for word in (name, *get_dialect(name).aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("dialects.md", dialect_names()),
        ("dialects.md", sorted({o for name in dialect_names() for o in get_dialect(name).Options.__struct_fields__})),
        ("problems.md", PROBLEM_KINDS),
        ("simulated.md", tuple(FAULTS)),
        ("library.md", tuple(name for name in callwright.__all__ if name[0].islower() and name not in RUNTIME)),
        ("agent.md", RUNTIME),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_docs_name_everything(page: str, names: tuple[str, ...]) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert not [name for name in names if f"`{name}" not in text and f"{name}(" not in text]


PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


def test_the_index_names_every_page_and_the_architecture_every_module() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:] if page.name != "README.md"]
    assert not [page for page in pages if f"]({page})" not in index]
    architecture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tops = {module.split(".")[0] for module in modules()}
    assert not [name for name in tops if f"`{name}`" not in architecture and f"`{name}/`" not in architecture]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", text_of(page), flags=re.DOTALL)):
        if not target.startswith(("http://", "https://")):
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            assert there.exists(), target
            assert not anchor or anchor in anchors(there), target


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    heads = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_no_file_names_a_registry_or_a_path_of_a_machine() -> None:
    for path in ROOT.rglob("*"):
        inside = path.relative_to(ROOT).parts
        if not path.is_file() or inside[0].startswith(NOT_OURS):
            continue
        if path.suffix in (".py", ".md", ".toml", ".txt", ".cfg", ""):
            text = path.read_text(encoding="utf-8", errors="replace")
            assert not re.search(r"(?<![\w./])/(?:root|work|home/\w+)/", text.replace("/home/user", "")), path
            assert not re.search(r"index-url|://[\w.-]+/simple\b", text) or path.name == "test_house.py", path
