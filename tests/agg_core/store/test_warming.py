"""The work of ``agg-core warm`` meets every kernel; its record is true."""

from __future__ import annotations

import inspect
import json
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import agg_core
from agg_core.base import warmth
from agg_core.cli.main import main
from agg_core.learn.table import AUTO, LEARNERS
from agg_core.store import warming


def kernels():
    """Every compiled function of the package, by module and name."""
    found = {}
    for module in pkgutil.walk_packages(agg_core.__path__, "agg_core."):
        if module.name.endswith("__main__"):
            continue
        values = vars(import_module(module.name)).values()
        found |= {k.py_func: k for k in values if isinstance(k, Dispatcher)}
    return found


def bodies():
    """Functions of modules of kernels that are compiled within others, by the kind of a table."""
    for module in pkgutil.walk_packages(agg_core.__path__, "agg_core."):
        if module.name.endswith("_kernels"):
            loaded = import_module(module.name)
            for value in vars(loaded).values():
                if inspect.isfunction(value) and value.__module__ == module.name:
                    yield value


def called_by_kernels(found):
    """Those that another one calls, which is compiled or loaded together with them."""
    inner = set()
    for function in (*found, *bodies()):
        for value in inspect.getclosurevars(function).globals.values():
            if isinstance(value, Dispatcher) and value.py_func is not function:
                inner.add(value.py_func)
    return inner


def test_every_kernel_is_called(tmp_path):
    for number, work in enumerate(warming.tiny_work()):
        work.run(tmp_path / str(number))
        learned = not work.name.startswith("refused")
        assert (tmp_path / str(number) / "result").is_dir() == learned, work.name
    found = kernels()
    outer = set(found) - called_by_kernels(found)
    assert outer
    missed = [f"{f.__module__}.{f.__name__}" for f in outer if not found[f].signatures]
    assert missed == []


def test_every_learner_of_the_table_is_there():
    names = " ".join(work.name for work in warming.tiny_work())
    assert [name for name in LEARNERS.own if name != AUTO and name not in names] == []


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """A cache of its own, and work that leaves one file there."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    done = []

    class Work:
        def run(self, folder: Path) -> None:
            done.append(folder)
            (cache / "kernels").mkdir(parents=True, exist_ok=True)
            (cache / "kernels" / "a.nbi").write_bytes(b"")

    monkeypatch.setattr(warming, "tiny_work", lambda: iter([Work()]))
    monkeypatch.setattr(warming, "_cache_folders", lambda: {str(cache / "kernels")})
    return cache, done


def test_it_is_done_once(quick, capsys):
    cache, done = quick
    assert not warmth.is_warm()
    assert main(["warm", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["was_warm"], first["n_kernels"], len(done)) == (False, 1, 1)
    assert warmth.is_warm()
    assert main(["warm"]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert len(done) == 1
    (cache / "kernels" / "a.nbi").unlink()
    assert not warmth.is_warm()


@pytest.mark.parametrize("record", ["", "{", "[]", '{"source": 1}', '{"source": null}'])
def test_a_record_that_is_none_is_not_believed(quick, record):
    cache, _ = quick
    cache.mkdir(parents=True)
    (cache / warmth.RECORD).write_text(record)
    assert not warmth.is_warm()


def test_another_source_is_compiled_anew(quick, monkeypatch):
    warming.warm()
    monkeypatch.setattr(warmth, "__version__", "0")
    assert not warmth.is_warm()
