"""The shape of the code: who may import whom, what a module shows, what it never uses."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest

from agg_core.base.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
FIRST_PARTY = ("agg_core", "ui", "pages", "app")

# From the ground up: a module imports from its own row and the rows above it in this list.
LAYERS = (
    ("base",),
    ("space",),
    ("tables",),
    ("model",),
    ("learn",),
    ("counts",),
    ("gates",),
    ("io",),
    ("study",),
    ("evidence",),
    ("made",),
    ("lab",),
    ("plotting",),
    ("exports",),
    ("store",),
    ("cli", "__init__"),
    ("__main__",),
)
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}

DRAWING = {"plotly", "pydeck"}
UNSAFE_MODULES = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
UNSAFE_CALLS = {"read_pickle", "to_pickle"}

CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
WITHOUT_CODES = ("agg_core.io",)
"""Where tests of their own look at codes (tests/agg_core/io/test_codes.py)."""

# Pinned although no line of ours imports them.
USED_BY_OTHERS = {
    "pyogrio": "the engine by which geopandas reads and writes vector files",
    "pyarrow": "the engine by which pandas reads and writes Parquet",
}


@dataclass(frozen=True)
class Import:
    target: str
    line: int
    runs_at_import: bool


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    tree: ast.Module

    @property
    def layer_room(self) -> str:
        """The file or folder of agg_core that the module lives in."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else "__init__"


def _read(path: Path) -> Module:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(name, path, ast.parse(path.read_text(encoding="utf-8")))


MODULES = [
    _read(path)
    for place in FIRST_PARTY
    for path in [*sorted((ROOT / place).rglob("*.py")), ROOT / f"{place}.py"]
    if path.is_file()
]
CORE = [module for module in MODULES if module.name.split(".")[0] == "agg_core"]
NAMES = {module.name for module in MODULES}


def _imports(module: Module) -> Iterator[Import]:
    """Every import, wherever it stands; for `from package import submodule`, the submodule."""

    def walk(node: ast.AST, runs: bool) -> Iterator[Import]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            runs = False
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for statement in node.body:
                yield from walk(statement, False)
            for statement in node.orelse:
                yield from walk(statement, runs)
            return
        for target in _targets(node, module):
            yield Import(target, getattr(node, "lineno", 0), runs)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, runs)

    yield from walk(module.tree, True)


def _targets(node: ast.AST, module: Module) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            is_package = module.path.name == "__init__.py"
            parts = module.name.split(".")
            package = parts[: len(parts) - node.level + is_package]
            base = ".".join([*package, base] if base else package)
        inner = [f"{base}.{alias.name}" for alias in node.names]
        return list(dict.fromkeys(name if name in NAMES else base for name in inner))
    if (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("importlib.import_module", "import_module", "__import__")
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ):
        return [str(node.args[0].value)]
    return []


def _where(module: Module, line: int) -> str:
    return f"{module.path.relative_to(ROOT)}:{line}"


def _is_bare(module: Module) -> bool:
    """A docstring and nothing else: no names to list."""
    return all(
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for node in module.tree.body
    )


def test_the_modules_are_found() -> None:
    assert {"agg_core", "agg_core.space.grid", "agg_core.base.errors"} <= NAMES


def test_only_plotting_draws_and_only_the_shell_imports_streamlit() -> None:
    faults = []
    for module in MODULES:
        in_core = module in CORE
        may_draw = in_core and module.layer_room == "plotting"
        for found in _imports(module):
            package = found.target.split(".")[0]
            if (package in DRAWING and not may_draw) or (package == "streamlit" and in_core):
                faults.append(f"{_where(module, found.line)} imports {found.target}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("importer", "forbidden"),
    [("agg_core", {"ui", "pages", "app"}), ("ui", {"pages", "app"}), ("pages", {"app"})],
)
def test_places_are_imported_one_way(importer: str, forbidden: set[str]) -> None:
    faults = [
        f"{_where(module, found.line)} imports {found.target}"
        for module in MODULES
        if module.name.split(".")[0] == importer
        for found in _imports(module)
        if found.target.split(".")[0] in forbidden
    ]
    assert not faults, "\n".join(faults)


def test_every_room_of_the_core_has_its_layer() -> None:
    unknown = {module.layer_room for module in CORE} - set(RANK)
    assert not unknown, f"give these a row in LAYERS: {sorted(unknown)}"


def test_layers_of_the_core_are_imported_one_way() -> None:
    rooms = {module.name: module.layer_room for module in CORE}
    faults = [
        f"{_where(module, found.line)} ({module.layer_room}) imports {found.target}"
        for module in CORE
        for found in _imports(module)
        if found.target in rooms
        and RANK.get(rooms[found.target], 0) > RANK.get(module.layer_room, len(LAYERS))
    ]
    assert not faults, "\n".join(faults)


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {
        module.name: {
            found.target
            for found in _imports(module)
            if found.runs_at_import and found.target in NAMES
        }
        for module in MODULES
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]), pytrace=False)


def test_the_core_loads_without_screen_or_drawing() -> None:
    names = [m.name for m in CORE if m.layer_room != "plotting"]
    program = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "print(*sorted({'streamlit', 'plotly', 'pydeck'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []


@pytest.mark.parametrize("module", CORE, ids=lambda module: module.name)
def test_a_module_lists_its_public_names(module: Module) -> None:
    if _is_bare(module):
        assert module.path.name == "__init__.py", "an empty module has no place here"
        return
    loaded = importlib.import_module(module.name)
    listed = getattr(loaded, "__all__", None)
    assert listed is not None, f"{module.name} has no __all__"
    assert len(set(listed)) == len(listed)
    assert [name for name in listed if not hasattr(loaded, name)] == []


def test_nothing_unpickles_or_shows_raw_html() -> None:
    faults = []
    for module in MODULES:
        faults += [
            f"{_where(module, found.line)} imports {found.target}"
            for found in _imports(module)
            if found.target.split(".")[0] in UNSAFE_MODULES
        ]
        faults += [
            f"{_where(module, node.lineno)} uses {ast.unparse(node)}"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.expr | ast.keyword) and _is_unsafe(node)
        ]
    assert not faults, "\n".join(faults)


def _is_unsafe(node: ast.expr | ast.keyword) -> bool:
    if isinstance(node, ast.keyword):
        if node.arg == "allow_pickle":
            return not (isinstance(node.value, ast.Constant) and node.value.value is False)
        return node.arg == "unsafe_allow_html"
    if isinstance(node, ast.Attribute):
        return node.attr in UNSAFE_CALLS
    return isinstance(node, ast.Constant) and node.value in ("allow_pickle", "unsafe_allow_html")


def test_every_error_that_a_person_can_mend_has_a_code() -> None:
    makers = {"InputError", *_heirs("InputError")}
    made = [
        (_where(module, node.lineno), node)
        for module in MODULES
        if not f"{module.name}.".startswith(tuple(f"{name}." for name in WITHOUT_CODES))
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in makers
    ]
    assert len(made) > 200, "the errors are found"
    faults = [f"{place}: {ast.unparse(node)}" for place, node in made if not _has_code(node)]
    assert not faults, "\n".join(faults)


def _heirs(name: str) -> set[str]:
    """Classes of ours that are made from the one of that name, at any remove."""
    own = {
        node.name
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
        and name in [ast.unparse(base).split(".")[-1] for base in node.bases]
    }
    return own.union(*map(_heirs, own))


def _has_code(call: ast.Call) -> bool:
    """Whether ``code`` is written out in the right form, or is that of another error."""
    (code, *_) = [word.value for word in call.keywords if word.arg == "code"] or [None]
    if isinstance(code, ast.Attribute):
        return code.attr == "code"
    return (
        isinstance(code, ast.Constant)
        and isinstance(code.value, str)
        and CODE.fullmatch(code.value) is not None
    )


def _pins() -> dict[str, str]:
    """Those of the dashboard, and of the engine that only tests and owners of clusters install."""
    pins = _pins_in("requirements.txt")
    return pins | {name: _pins_in("requirements-dev.txt")[name] for name in EXTRAS["dask"]}


def _pins_in(file: str) -> dict[str, str]:
    pins = {}
    for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", "-r ")):
            pin = re.fullmatch(r"([a-z0-9-]+)==([0-9][0-9a-z.]*)", line)
            assert pin, f"not an exact pin: {line}"
            pins[pin[1]] = pin[2]
    return pins


def _third_party() -> dict[str, str]:
    """Where each package from outside is imported: distribution name to one place."""
    owners = packages_distributions()
    return {
        owners.get(package, [package])[0].lower().replace("_", "-"): _where(module, found.line)
        for module in MODULES
        for found in _imports(module)
        if (package := found.target.split(".")[0]) not in (*FIRST_PARTY, "__future__")
        and package not in sys.stdlib_module_names
    }


def test_every_import_from_outside_is_pinned() -> None:
    missing = {name: place for name, place in _third_party().items() if name not in _pins()}
    assert not missing, f"not in the requirements: {missing}"


def test_every_pin_is_used() -> None:
    assert set(_pins()) - set(_third_party()) - set(USED_BY_OTHERS) == set()


def test_what_is_tested_is_what_is_pinned() -> None:
    assert {name: version(name) for name in _pins()} == _pins()
