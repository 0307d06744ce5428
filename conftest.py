"""Which tests run, and by which of several processes.

    scripts/test            all but those that are `slow`, or need what CALLWRIGHT_CLIENTS=1 installs; of tests with
                            many cases some, at equal distances
    scripts/test --all      every test and case, with many examples of what is sampled
    scripts/test --quick    the core: few cases of each test and dialect; nothing of the gateway and of the project's
                            own rules, no processes
    scripts/test PATH…      what is named, nothing left out

The last lines of a run tell what was left out, and how to run it.
"""

import atexit
import gc
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, TypeAlias

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

# Of a hundred examples that a sampled test asks for (`tests.support.examples`), this number is tried. They are the same
# in each run, so that a change fails by its own fault; `--all --hypothesis-seed N` tries others, and all of them: see
# nightly.yml.
settings.register_profile(
    "all", max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
settings.register_profile("brief", settings.get_profile("all"), max_examples=4)
settings.register_profile("quick", settings.get_profile("brief"), max_examples=4)
settings.register_profile("seed", settings.get_profile("all"), max_examples=100, derandomize=False)

# No test may find a model server on the ports of this machine.
os.environ["CALLWRIGHT_UPSTREAM"] = "simulated"
# And none may use the user's own store.
_state = TemporaryDirectory(prefix="callwright-state-")
atexit.register(_state.cleanup)
os.environ["XDG_STATE_HOME"] = _state.name

Selection: TypeAlias = Literal["all", "brief", "quick", "named"]

_NOT_QUICK: Final = ("tests/clients", "tests/gateway", "tests/project")
# So many cases at most: of each test and dialect, and of a test that names no dialect.
_CASES: Final[Mapping[str, tuple[int, int]]] = {"quick": (1, 1), "brief": (2, 8)}
_TOGETHER: Final = 150  # so many tests of a module go to a worker at once
_HOW: Final[Mapping[str, str]] = {
    "slow": "slow (scripts/test --all)",
    "clients": "with clients and databases (CALLWRIGHT_CLIENTS=1 scripts/test)",
    "processes": "that start processes (scripts/test)",
    "servers": "that share servers (scripts/test)",
    "cases": "further cases (scripts/test --all)",
}
_left_out: Final = pytest.StashKey[dict[str, int]]()
_module: Final = pytest.StashKey[Path]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("selection", "which tests run")
    for name, what in (("all", "every test and case"), ("quick", "the core only, without processes")):
        group.addoption(f"--{name}", dest="selection", action="store_const", const=name, help=what)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_left_out] = {}
    selection = _selection(config)
    profile = "brief" if selection == "named" else selection
    has_seed = profile == "all" and config.getoption("--hypothesis-seed") is not None
    settings.load_profile("seed" if has_seed else profile)


def _selection(config: pytest.Config) -> Selection:
    chosen: Selection | None = config.getoption("selection")
    return chosen or ("named" if config.args_source is pytest.Config.ArgsSource.ARGS else "brief")


# --- which ---


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    left_out = _selection(config) == "quick" and collection_path in {config.rootpath / name for name in _NOT_QUICK}
    return left_out or None  # None leaves it to pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    selection = _selection(config)
    if selection in ("brief", "quick"):
        why = {item: _why_not(item, selection) for item in items}
        kept = [item for item in items if not why[item]]
        sample = set(_sample(kept, *_CASES[selection]))
        why |= {item: "cases" for item in kept if item not in sample}
        config.stash[_left_out] = dict(Counter(filter(None, why.values())))
        items[:] = [item for item in items if not why[item]]
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = config.stash[_left_out]
        costly = {item.path for item in items if _costly(item)}
        items.sort(key=lambda item: item.path not in costly)  # what is over soon fills the gaps at the end


def _why_not(item: pytest.Item, selection: Selection) -> str:
    """Why a test is left out; empty when it is not."""
    if _is_marked(item, "clients", "postgres") and not (os.environ.get("CALLWRIGHT_CLIENTS") and selection != "quick"):
        return "clients"
    if _is_marked(item, "slow"):
        return "slow"
    if selection == "quick":
        return "processes" if _is_marked(item, "processes") else "servers" if _shares(item) else ""
    return ""


def _is_marked(item: pytest.Item, *names: str) -> bool:
    return any(item.get_closest_marker(name) for name in names)


def _sample(items: list[pytest.Item], of_dialect: int, of_test: int) -> Iterator[pytest.Item]:
    """Of each test so many cases of each dialect, or in all, at equal distances: the same ones in every run."""
    rows: dict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        rows[item.nodeid.partition("[")[0], _dialect(item)].append(item)
    for (_, dialect), row in rows.items():
        yield from row[:: -(-len(row) // (of_dialect if dialect else of_test))]


def _dialect(item: pytest.Item) -> str:
    parameters: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    named = [parameters.get("dialect"), *(getattr(value, "dialect", None) for value in parameters.values())]
    return next((name for name in named if isinstance(name, str)), "")


def _shares(item: pytest.Item) -> bool:
    """Whether it uses what is made once for several tests, such as a server."""
    found = getattr(item, "_fixtureinfo", None)
    fixtures = [each for defined in (found.name2fixturedefs.values() if found else ()) for each in defined]
    return any(each.scope != "function" and each.func.__module__.startswith("tests.") for each in fixtures)


def pytest_runtest_setup(item: pytest.Item) -> None:
    # Thousands of tests and full caches stay alive to the end of a run, and many tests call the garbage collector: it
    # need not visit objects that are older than the test's module.
    if item.config.stash.get(_module, None) != item.path:
        item.config.stash[_module] = item.path
        gc.collect()
        gc.freeze()


# --- where ---


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are cores, because some tests wait; none where only files are named, sooner done here."""
    few = _selection(config) == "named" and not any(os.path.isdir(path) for path in config.args)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 0 if few else cores + 1


class _ByModule(LoadScopeScheduling):  # type: ignore[misc]  # xdist says nothing of its types
    """Tests of a module go to one worker, which starts its servers once; large modules in several parts.

    xdist's own groups (`--dist loadgroup`) are without effect under pytest 9.2: pytest-dev/pytest-xdist issue 1386.
    """

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._parts: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def _split_scope(self, nodeid: str) -> str:
        if nodeid not in self._parts:
            module = nodeid.partition("::")[0]
            self._parts[nodeid] = f"{module} {self._counts[module] // _TOGETHER}"
            self._counts[module] += 1
        return self._parts[nodeid]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByModule:
    return _ByModule(config, log)


def _costly(item: pytest.Item) -> bool:
    return _shares(item) or _is_marked(item, "processes", "clients", "postgres")


# --- marks that are true ---

_STARTS: Final = frozenset({"subprocess.Popen", "os.posix_spawn", "os.fork"})
_started: Final[list[str]] = []


def _watch(event: str, _: tuple[Any, ...]) -> None:
    if event in _STARTS:
        _started.append(event)


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def _processes_are_marked(request: pytest.FixtureRequest) -> Iterator[None]:
    """A quick run starts no process: so what does says that it does."""
    before = len(_started)
    yield
    marked = _is_marked(request.node, "processes", "clients", "postgres")
    assert marked or len(_started) == before, "it starts a process: mark it with pytest.mark.processes"


# --- what is told ---


def pytest_testnodedown(node: Any) -> None:
    """A worker has ended: all of them have left out the same."""
    node.config.stash[_left_out] = getattr(node, "workeroutput", {}).get("left_out", {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash[_left_out]
    left_out = [f"{counts[why]:,} {how}" for why, how in _HOW.items() if why in counts]
    if _selection(config) == "quick":
        left_out.append(f"{' and '.join(_NOT_QUICK)} (scripts/test)")
    skipped = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in _skipped(terminalreporter))
    for reason, count in skipped.most_common():
        way = " (CALLWRIGHT_CLIENTS=1 scripts/test)" if reason.endswith(" is not installed") else ""
        left_out.append(f"{count:,} skipped: {reason}{way}")
    for line in left_out:
        terminalreporter.write_line(f"left out: {line}")
    _write_ceilings(terminalreporter)


def _write_ceilings(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each measured value with its ceiling, as the tests have recorded them by `record_property`."""
    ran = [report for name in ("passed", "failed") for report in terminalreporter.stats.get(name, ())]
    rows = sorted(value for report in ran for name, value in report.user_properties if name == "ceiling")
    if rows:
        terminalreporter.write_line(f"{'ceilings':56}{'now':>8}{'most':>8}")
    for what, now, most in rows:
        terminalreporter.write_line(f"  {what:54}{now:8,}{most:8,}")


def _skipped(terminalreporter: pytest.TerminalReporter) -> list[Any]:
    return [report for report in terminalreporter.stats.get("skipped", ()) if isinstance(report.longrepr, tuple)]
