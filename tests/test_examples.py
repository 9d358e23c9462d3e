"""What ``import agg_core`` offers, that it loads late, and that its examples run as printed."""

from __future__ import annotations

import ast
import doctest
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import agg_core

ROOT = Path(__file__).resolve().parents[1]
OFFERED = [name for name in agg_core.__all__ if name != "__version__"]
WITHOUT_EXAMPLE = {"InputError", "load_result", "save_result"}


@pytest.mark.parametrize("name", OFFERED)
def test_examples_of_what_is_offered_run(name):
    value = getattr(agg_core, name)
    tests = doctest.DocTestFinder(recurse=False).find(value, name, module=False)
    examples = [test for test in tests if test.examples]
    assert bool(examples) != (name in WITHOUT_EXAMPLE)
    for test in examples:
        ran = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
        assert ran.failed == 0
        assert ran.attempted == len(test.examples)


def test_names_for_the_type_checker_are_those_that_load():
    tree = ast.parse(inspect.getsource(agg_core))
    (checking,) = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {
        alias.name: node.module
        for node in checking.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == agg_core._HOMES
    assert sorted(typed) == sorted(OFFERED)
    assert set(OFFERED) <= set(dir(agg_core))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = agg_core.nonsense


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("import agg_core; agg_core.InputError", {"numpy", "pandas", "pyarrow", "numba", "scipy"}),
        ("from agg_core.cli.main import main\n"
         "try:\n    main(['--help'])\nexcept SystemExit:\n    pass",
         {"numpy", "pandas", "pyarrow", "numba", "scipy"}),
        ("from agg_core.cli.main import main; main(['inspect', sys.argv[1]])",
         {"numba", "scipy", "sklearn", "geopandas"}),
    ],
)  # fmt: skip
def test_what_is_slow_to_load_waits_until_it_is_used(program, absent, tmp_path):
    file = tmp_path / "people.csv"
    file.write_text(
        "user_id,time,lon,lat\na,2024-05-01T08:00Z,139.5,35.5\na,2024-05-01T09:00Z,139.6,35.6\n"
    )
    code = f"import sys\n{program}\nprint('LOADED', *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], cwd=ROOT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split("LOADED ")[1].split())
    assert loaded & absent == set()
