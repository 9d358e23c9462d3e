"""What long work has found so far, kept in a folder, so that it goes on from there.

Work that hangs on its settings and its seeds alone comes to the same result whenever it is done
again. So a checkpoint is only what saves the time: parts that were found are read instead of done,
and one that is missing, damaged or of another version of the package is done again. It is plain
arrays and JSON, which nothing executes.
"""

from __future__ import annotations

import json
import os
import secrets
import time
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from scipy import sparse

from agg_core.base.engine import Engine, current
from agg_core.base.version import __version__

__all__ = ["Checkpoints", "Course", "checkpoints", "followed", "use_checkpoints"]

Item = TypeVar("Item")
Result = TypeVar("Result")
Step = TypeVar("Step")

PACKAGE = "agg_core."
TREE = "tree"

SHARE = 10.0
"""Writing takes at most about one part in so many of the time."""

UNREADABLE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, ValueError, KeyError, TypeError,
              AttributeError, IndexError, ImportError, RecursionError)  # fmt: skip
"""What reading a checkpoint raises that is cut or altered, or of other code."""


class Checkpoints:
    """Parts of some work that were found, by names; ``folder`` None keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        if folder is not None:
            folder.mkdir(mode=0o700, exist_ok=True)

    def get(self, name: str, known: Sequence[object] = ()) -> Any:
        """What was kept under a name; None if nothing was, or it cannot be read.

        ``known`` are objects that `put` was given, too, and that are meant where it met them.
        """
        if self.folder is None:
            return None
        try:
            with self._path(name).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                told = json.loads(arrays[TREE].tobytes())
                if told["version"] != __version__ or told["name"] != name:
                    return None
                return _Thawing(arrays, known)(told["value"])
        except UNREADABLE:
            return None

    def put(self, name: str, value: Any, known: Sequence[object] = ()) -> bool:
        """Keep a value, whole or not at all; False where the disk refuses, or it is no plain one.

        Plain are numbers, texts, arrays, tables, and the dataclasses of this package, sequences and
        dictionaries of such. What of it is one object is one when it is read.
        """
        if self.folder is None:
            return False
        frozen = _Freezing(known)
        try:
            told = {"version": __version__, "name": name, "value": frozen(value)}
        except TypeError:
            return False
        tree = np.frombuffer(json.dumps(told).encode(), dtype=np.uint8)
        path = self._path(name)
        partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            with partial.open("wb") as file:
                np.savez(file, allow_pickle=False, **{TREE: tree}, **frozen.arrays)
            os.replace(partial, path)
        except OSError:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            return False
        return True

    def each(
        self,
        name: str,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        engine: Engine | None = None,
    ) -> Generator[Result, None, None]:
        """`Engine.each` of an engine, or else of that in use, but for items that were kept."""
        waiting = deque[tuple[int, Any]]()

        def missing() -> Iterator[Item]:
            for number, item in enumerate(items):
                found = self.get(f"{name}/{number}")
                waiting.append((number, found))
                if found is None:
                    yield item

        done = (engine or current()).each(function, missing())
        more = True
        while more or waiting:
            if waiting and waiting[0][1] is not None:
                yield waiting.popleft()[1][0]
                continue
            try:
                result = next(done)
            except StopIteration:
                more = False
                continue
            while waiting[0][1] is not None:
                yield waiting.popleft()[1][0]
            number, _ = waiting.popleft()
            self.put(f"{name}/{number}", (result,))
            yield result

    def steps(
        self,
        name: str,
        function: Callable[[Item], Generator[Step, None, Result]],
        items: Iterable[Item],
    ) -> Generator[Step, None, list[Result]]:
        """The steps of work in steps for each item, in the items' order; returns the results.

        Items are done by the engine in use, but for those whose steps and results were kept. Of
        several the steps of an item are told together; those of a single one are not kept, and each
        is told as soon as it is made.
        """
        several = list(items)
        if len(several) == 1:
            return [(yield from function(several[0]))]
        results = []
        for made, result in self.each(name, partial(_run_out, function), several):
            yield from made
            results.append(result)
        return results

    def course(self, name: str, known: Sequence[object] = ()) -> Course:
        """Where something in iterations stands, kept from time to time."""
        return Course(self, name, known)

    def below(self, name: str) -> Path | None:
        """A folder within for `use_checkpoints`, whose names are its own; None if nothing is kept.

        For a part of the work that is work in itself: what it keeps is not kept by its fellows.
        """
        return None if self.folder is None else self._path(name).with_suffix("")

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{sha256(name.encode()).hexdigest()[:32]}.npz"


def _run_out(
    function: Callable[[Item], Generator[Step, None, Result]], item: Item
) -> tuple[list[Step], Result]:
    """All steps of an item, and what they return."""
    made: list[Step] = []
    steps = function(item)
    while True:
        try:
            made.append(next(steps))
        except StopIteration as end:
            return made, end.value


class Course:
    """Where a fit in iterations stands: all that it needs to go on as if it had not stopped.

    The stream of iterations notes what it would go on from just before it gives one; whoever
    follows it keeps that together with what the iterations have told so far.
    """

    def __init__(self, kept_in: Checkpoints, name: str, known: Sequence[object]) -> None:
        self._checkpoints, self._name, self._known = kept_in, name, known
        self._found: Any = kept_in.get(name, known)
        self._keeps = kept_in.folder is not None
        self._next = 0.0
        self._noted: Callable[[], Any] | None = None

    @property
    def stood(self) -> Any:
        """What the stream noted before it was stopped; None at a first beginning."""
        return None if self._found is None else self._found[0]

    @property
    def told(self) -> Any:
        """What had been told by then; None at a first beginning."""
        return None if self._found is None else self._found[1]

    def note(self, stands: Callable[[], Any]) -> None:
        """What the stream goes on from after the iteration that it gives next."""
        self._noted = stands

    def keep(self, told: Callable[[], Any]) -> None:
        """Keep what was noted and what was told, unless keeping took much of the time since."""
        noted, self._noted = self._noted, None
        if noted is None or not self._keeps or time.monotonic() < self._next:
            return
        began = time.monotonic()
        self._keeps = self._checkpoints.put(self._name, (noted(), told()), self._known)
        ended = time.monotonic()
        self._next = ended + SHARE * (ended - began)


def followed(steps: Iterator[Step], course: Course | None) -> Iterator[Step]:
    """The iterations of a stream that notes what it goes on from, each kept as what is told.

    Of a course that was stopped the last one that was kept comes first, once more.
    """
    if course is not None and course.told is not None:
        yield course.told
    for step in steps:
        if course is not None:
            course.keep(partial(_same, step))
        yield step


def _same(step: Step) -> Step:
    return step


_NOTHING_KEPT = Checkpoints(None)
_current: ContextVar[Checkpoints] = ContextVar("checkpoints", default=_NOTHING_KEPT)


def checkpoints() -> Checkpoints:
    """Those of the `use_checkpoints` around; without one nothing is kept."""
    return _current.get()


@contextmanager
def use_checkpoints(folder: Path | None) -> Iterator[Checkpoints]:
    """Keep in a folder what the work within finds, and begin with what is there."""
    kept = Checkpoints(folder)
    token = _current.set(kept)
    try:
        yield kept
    finally:
        _current.reset(token)


class _Freezing:
    """Turns values into JSON; arrays lie beside, by number."""

    def __init__(self, known: Sequence[object]) -> None:
        self.arrays: dict[str, Any] = {}
        self._known = {id(value): number for number, value in enumerate(known)}
        self._met: dict[int, int] = {}
        self._held: list[object] = []

    def __call__(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        if type(value) is float:
            return {"float": value.hex()}
        if id(value) in self._known:
            return {"known": self._known[id(value)]}
        if id(value) in self._met:
            return {"again": self._met[id(value)]}
        found = self._frozen(value)
        self._met[id(value)] = len(self._held)
        self._held.append(value)  # so that no other object gets its id
        return found

    def _frozen(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return {"array": self._array(value)}
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value))}
        for name, kind in _KINDS.items():
            if kind.holds(value):
                return {name: [self(part) for part in kind.parts(value)]}
        raise TypeError(f"a {type(value).__name__} is not kept")

    def _array(self, array: np.ndarray[Any, Any]) -> str:
        if array.dtype.hasobject:
            raise TypeError("an array of objects is not kept")
        name = str(len(self.arrays))
        self.arrays[name] = array
        return name


class _Thawing:
    """Turns that JSON into values again, in the same order."""

    def __init__(self, arrays: Any, known: Sequence[object]) -> None:
        self._arrays, self._known = arrays, known
        self._met: list[Any] = []

    def __call__(self, told: Any) -> Any:
        if not isinstance(told, dict):
            return told
        if "float" in told:
            return float.fromhex(told["float"])
        if "known" in told:
            return self._known[told["known"]]
        if "again" in told:
            return self._met[told["again"]]
        found = self._thawed(told)
        self._met.append(found)
        return found

    def _thawed(self, told: dict[str, Any]) -> Any:
        ((name, given),) = told.items()
        if name in ("array", "scalar"):
            array = self._arrays[given]
            return array if name == "array" else array[()]
        return _KINDS[name].made([self(part) for part in given])


@dataclass(frozen=True)
class _Kind:
    """Values that are made of others: which, of what parts, and how they are made again."""

    holds: Callable[[Any], bool]
    parts: Callable[[Any], list[Any]]
    made: Callable[[list[Any]], Any]


def _is_record(value: Any) -> bool:
    return type(value).__module__.startswith(PACKAGE) and _names_of(type(value)) is not None


def _names_of(of: Any) -> list[str] | None:
    """Names of what a dataclass or a named tuple holds; None of other classes."""
    if isinstance(of, type) and is_dataclass(of):
        return [field.name for field in fields(of)]
    return list(of._fields) if issubclass(of, tuple) and hasattr(of, "_fields") else None


def _parts_of_record(value: Any) -> list[Any]:
    of, names = type(value), _names_of(type(value)) or []
    return [of.__module__, of.__qualname__, *names, *(getattr(value, name) for name in names)]


def _record(parts: list[Any]) -> Any:
    """A dataclass or named tuple as it was: what its checks found stands already."""
    module, qualname, *rest = parts
    if not module.startswith(PACKAGE):
        raise ValueError(module)
    of: Any = import_module(module)
    for name in qualname.split("."):
        of = getattr(of, name)
    if not isinstance(of, type) or _names_of(of) is None:
        raise TypeError(qualname)
    if issubclass(of, tuple):
        return of(**dict(_pairs(rest)))
    made = object.__new__(of)
    for name, value in _pairs(rest):
        object.__setattr__(made, name, value)
    return made


def _pairs(parts: list[Any]) -> list[tuple[Any, Any]]:
    """Keys, which are the first half, each with its value."""
    half = len(parts) // 2
    return list(zip(parts[:half], parts[half:], strict=True))


_KINDS = {
    "tuple": _Kind(lambda value: type(value) is tuple, list, tuple),
    "list": _Kind(lambda value: type(value) is list, list, list),
    "deque": _Kind(
        lambda value: type(value) is deque,
        lambda value: [value.maxlen, *value],
        lambda parts: deque(parts[1:], parts[0]),
    ),
    "dict": _Kind(
        lambda value: type(value) is dict,
        lambda value: [*value, *value.values()],
        lambda parts: dict(_pairs(parts)),
    ),
    "csr": _Kind(
        lambda value: isinstance(value, sparse.csr_array),
        lambda value: [value.data, value.indices, value.indptr, *map(int, value.shape)],
        lambda parts: sparse.csr_array(tuple(parts[:3]), shape=tuple(parts[3:])),
    ),
    "frame": _Kind(
        lambda value: (
            isinstance(value, pd.DataFrame) and value.index.equals(pd.RangeIndex(len(value)))
        ),
        lambda value: [*value.columns, *(value[name].to_numpy() for name in value.columns)],
        lambda parts: pd.DataFrame(dict(_pairs(parts))),
    ),
    "record": _Kind(_is_record, _parts_of_record, _record),
}
"""Values that are kept besides numbers, texts and arrays."""
