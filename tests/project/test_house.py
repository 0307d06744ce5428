"""House rules: what keeps the code readable is held by tests."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import callwright
from callwright.dialects.base import dialect_names, get_dialect
from callwright.events import PROBLEM_KINDS
from callwright.upstreams.simulated.faults import FAULTS
from tests.support.paths import ROOT

SOURCES = ROOT / "src" / "callwright"
MAX_LINES = 500
# What the runtime adds to the package's public names.
RUNTIME = tuple(callwright._RUNTIME)

NOT_OURS = (".venv", ".git", ".mypy", ".ruff", ".pytest", ".hypothesis", ".agents", ".clients", ".oracle", ".site")


def modules() -> list[str]:
    """All modules, by their name inside the package."""
    found = pkgutil.walk_packages([str(SOURCES)], "callwright.")
    return [name for module in found if (name := module.name.removeprefix("callwright.")) != "__main__"]


# What is loaded inside another program only, and by which; and what needs more than the package does.
INSIDE = {"vllm_plugin": "vllm", "database.postgresql": "greenlet"}


def path_of(module: str) -> Path:
    base = SOURCES / module.replace(".", "/")
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


@pytest.mark.parametrize("module", modules())
def test_modules_stay_short(module: str) -> None:
    assert len(path_of(module).read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize("module", modules())
def test_modules_say_what_they_are_for(module: str) -> None:
    if needed := INSIDE.get(module):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    loaded = importlib.import_module(f"callwright.{module}")
    assert loaded.__doc__
    names = getattr(loaded, "__all__", [])  # only of modules that re-export names
    assert names == sorted(names, key=natural)
    assert all(hasattr(loaded, name) for name in names)


@pytest.mark.parametrize("module", modules())
def test_private_constants_are_used(module: str) -> None:
    """Linters check this for functions' variables only."""
    tree = ast.parse(path_of(module).read_text(encoding="utf-8"))
    assigned = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    assigned += [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    constants = {target.id for target in assigned if isinstance(target, ast.Name) and re.match(r"_[A-Z]", target.id)}
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    assert not constants - read


def natural(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as ruff sorts `__all__`."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name


@pytest.mark.processes
@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("callwright", ("msgspec", "llguidance", "jsonschema_rs", "asyncio")),
        ("callwright.conversation", ("llguidance", "jsonschema_rs", "callwright.grammar", "asyncio")),
        ("callwright.upstreams.base", ("llguidance", "callwright.dialects", "callwright.calls", "httptools")),
        ("callwright.api", ("llguidance", "callwright.wire", "callwright.response_template", "asyncio", "httptools")),
        (
            "callwright.cli.main",
            (
                "llguidance",
                "callwright.gateway.app",
                "starlette",
                "sqlalchemy",
                "httptools",
                "jsonschema_rs",
                "asyncio",
            ),
        ),
    ],
)
def test_ground_floors_load_nothing_of_upper_ones(module: str, without: tuple[str, ...]) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert not [name for name in said if name.startswith(tuple(f"{other}." for other in without)) or name in without]


@pytest.mark.parametrize("name", dialect_names())
def test_every_dialect_has_the_whole_face_and_its_vectors(name: str) -> None:
    dialect = get_dialect(name)
    for attribute in ("aliases", "model_families", "source", "stops", "stop_token_ids", "options"):
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
        ("dialects.md", sorted({o for name in dialect_names() for o in get_dialect(name).options.__struct_fields__})),
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


OWN_FILE = re.compile(r"^https://github\.com/callwright/callwright/(?:blob|raw)/main/")
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


def test_the_index_names_every_page_and_the_architecture_every_module() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:] if page.name != "README.md"]
    assert not [page for page in pages if f"]({page})" not in index]
    architecture = (ROOT / "docs" / "contributing" / "architecture.md").read_text(encoding="utf-8")
    floors = architecture.split("## The floors")[1].split("\n## ")[0]
    tops = {module.split(".")[0] for module in modules()}
    assert {name for name in tops if f"`{name}`" not in floors and f"`{name}/`" not in floors} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", text_of(page), flags=re.DOTALL)):
        own = OWN_FILE.sub("", target)
        if not own.startswith(("http://", "https://")):
            path, _, anchor = own.partition("#")
            base = page.parent if own == target else ROOT
            there = (base / path).resolve() if path else page
            assert there.exists(), target
            assert not anchor or anchor in anchors(there), target


def test_the_readme_links_work_outside_a_clone() -> None:
    """Package indexes show the README, without the other files."""
    assert not [one for one in re.findall(r"\]\(([^)\s]+)\)", text_of(PAGES[0])) if not one.startswith(("http", "#"))]


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
