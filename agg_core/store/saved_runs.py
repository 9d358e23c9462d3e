"""What is told of saved runs without opening them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from agg_core.base.earlier import of_today
from agg_core.base.errors import InputError
from agg_core.evidence.privacy import LEAST_PEOPLE, MOST_PEOPLE
from agg_core.learn.table import present_name
from agg_core.store.codec import CODECS, LATER_FILES
from agg_core.store.files import SavedFile, sha256
from agg_core.study.counts import CountStudy
from agg_core.study.gates import GateStudy
from agg_core.study.people import StudyResult
from agg_core.study.result import FlowResult

__all__ = [
    "KINDS",
    "DamagedRun",
    "Kind",
    "NewerRun",
    "SavedCounts",
    "SavedGates",
    "SavedRun",
    "SavedStudy",
    "about_result",
    "from_json",
    "to_json",
]

FORMAT = 1


@dataclass(frozen=True)
class SavedRun:
    """What is told of any saved run without opening it; ``files`` by their names.

    ``owner`` is who saved it, None of a run that is nobody's own; ``shared`` is whether others may
    open it, who have its address, and ``least_people`` below how many people flows are withheld
    from them, 0 for none.
    """

    kind: ClassVar[str]

    id: str
    title: str
    created_utc: datetime
    learner: str
    files: dict[str, SavedFile]
    owner: str | None
    shared: bool
    least_people: int


@dataclass(frozen=True)
class SavedStudy(SavedRun):
    """A saved study of trajectories."""

    kind = StudyResult.kind

    times: tuple[str, ...]
    n_individuals: int
    group_size: int


@dataclass(frozen=True)
class SavedCounts(SavedRun):
    """Saved flows that were learned from counts."""

    kind = CountStudy.kind

    n_days: int
    n_cells: int


@dataclass(frozen=True)
class SavedGates(SavedRun):
    """Saved flows that were learned from entries and exits."""

    kind = GateStudy.kind

    n_days: int
    n_cells: int


@dataclass(frozen=True)
class DamagedRun:
    """A saved run that cannot be opened and why; ``created_utc`` is when it was last changed."""

    id: str
    created_utc: datetime
    fault: str
    owner: str | None = None


@dataclass(frozen=True)
class NewerRun:
    """A run that a later version saved, which this one neither opens nor changes."""

    id: str
    created_utc: datetime
    fault: str
    owner: str | None = None


@dataclass(frozen=True)
class Kind:
    """What is told of a kind of run without opening it.

    ``told`` gives the fields that `SavedRun` lacks, ``read`` says how each is taken from JSON.
    ``least_people`` is below how many people flows are withheld from others unless the owner says
    otherwise: where single people were followed, their flows may tell where one of them went.
    """

    run: type[SavedRun]
    told: Callable[[Any], dict[str, Any]]
    read: Mapping[str, Callable[[Any], Any]]
    least_people: int


def _told_of_study(result: StudyResult) -> dict[str, Any]:
    return {
        "times": result.times_of_day,
        "n_individuals": result.n_individuals,
        "group_size": result.settings.learn.group_size,
    }


def _told_of_counts(study: CountStudy) -> dict[str, Any]:
    return {"n_days": int(study.n_days), "n_cells": study.n_cells}


def _told_of_gates(study: GateStudy) -> dict[str, Any]:
    return {"n_days": int(study.n_days), "n_cells": len(study.cells)}


def _owner(value: Any) -> str | None:
    if value is not None and not (isinstance(value, str) and value.isascii()):
        raise ValueError(value)
    return value


def _least(value: Any) -> int:
    """A least number of people; never less than was meant."""
    least: int = math.ceil(value)
    if not 0 <= least <= MOST_PEOPLE:
        raise ValueError(value)
    return least


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(str(value) for value in values)


KINDS = {
    SavedStudy.kind: Kind(
        SavedStudy,
        _told_of_study,
        {"times": _texts, "n_individuals": int, "group_size": int},
        LEAST_PEOPLE,
    ),
    SavedCounts.kind: Kind(SavedCounts, _told_of_counts, {"n_days": int, "n_cells": int}, 0),
    SavedGates.kind: Kind(SavedGates, _told_of_gates, {"n_days": int, "n_cells": int}, 0),
}
"""Kinds of runs by the name that ``about.json`` has for them."""


def about_result(
    run_id: str, title: str, result: FlowResult, folder: Path, owner: str | None = None
) -> SavedRun:
    """What is to be told of a result of an owner that lies in a folder; it is not shared yet."""
    kind = KINDS[result.kind]
    return kind.run(
        id=run_id,
        title=title,
        created_utc=datetime.now(UTC),
        learner=result.learner,
        files={
            name: SavedFile(sha256(folder / name), (folder / name).stat().st_size)
            for name in CODECS[result.kind].files
            if (folder / name).exists() or name not in LATER_FILES
        },
        owner=owner,
        shared=False,
        least_people=kind.least_people,
        **kind.told(result),
    )


def to_json(run: SavedRun) -> str:
    """Text of ``about.json``."""
    values = {"format": FORMAT, "kind": run.kind, **asdict(run)}
    values["created"] = values.pop("created_utc").isoformat()
    return json.dumps(values, indent=1)


def from_json(run_id: str, values: Any) -> SavedRun:
    """What ``about.json`` of a run tells; without a kind it is a study, without an owner nobody's.

    Without a least number of people, as runs of earlier versions are, it has that of its kind.

    Raises
    ------
    InputError
        If it is of another format.
    KeyError, TypeError, ValueError, AttributeError, ArithmeticError
        If it was altered.
    """
    if int(values["format"]) != FORMAT:
        raise InputError(
            f"The saved run {run_id[:8]} is of format {values['format']}, and this version reads "
            f"{FORMAT}: open it with the version that saved it.",
            code="other-format-version",
        )
    if values["id"] != run_id:
        raise ValueError(values["id"])
    name_of_kind = values.get("kind", SavedStudy.kind)
    kind, listed, told = KINDS[name_of_kind], values["files"], of_today(values)
    return kind.run(
        id=run_id,
        title=str(values["title"]),
        created_utc=datetime.fromisoformat(values["created"]).astimezone(UTC),
        learner=", ".join(map(present_name, str(values["learner"]).split(", "))),
        files={
            name: SavedFile(str(listed[name]["sha256"]), int(listed[name]["bytes"]))
            for name in CODECS[name_of_kind].files
            if name in listed or name not in LATER_FILES
        },
        owner=_owner(values.get("owner")),
        shared=values.get("shared") is True,
        least_people=_least(values.get("least_people", kind.least_people)),
        **{name: take(told[name]) for name, take in kind.read.items()},
    )
