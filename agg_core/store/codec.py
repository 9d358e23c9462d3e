"""Results on disk: plain files that nothing executes, written whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from scipy import sparse

from agg_core.base.earlier import KEYS, of_today
from agg_core.base.errors import InputError
from agg_core.base.moves import (
    AnyMoves,
    entries,
    moves_like,
    places_of,
)
from agg_core.base.processes import write_json
from agg_core.counts.checks import Doubt
from agg_core.counts.days import DayFlows, Spread
from agg_core.counts.identify import Identifiability
from agg_core.lab.experiments import LabResult, LabSettings, Trend
from agg_core.lab.teaching import TeachingPoint, TeachingResult, TeachingSettings
from agg_core.learn.table import present_name
from agg_core.store.files import FileError, SavedFile
from agg_core.store.result_files import (
    ARRAYS_FILE,
    ResultFiles,
    write_arrays,
    write_result,
    write_table,
)
from agg_core.study.counts import CountStudy
from agg_core.study.crossings import GatesBeside
from agg_core.study.day_types import DayTypes
from agg_core.study.days import PeopleDays
from agg_core.study.gates import GateStudy
from agg_core.study.happened import HappenedFlows
from agg_core.study.people import SOURCES, AllowedNoise, Fit, StudyResult, TimeResult
from agg_core.study.result import ESTIMATE, FlowResult
from agg_core.study.settings import CountLearnSettings, GateLearnSettings, StudySettings
from agg_core.study.sweeps import FIGURES, Sweep, SweepResult, SweepRow
from agg_core.tables.ensemble import Ensemble
from agg_core.tables.flows import FlowComparison

__all__ = [
    "CODECS",
    "LATER_FILES",
    "REMEMBERED_FILE",
    "Codec",
    "load_known_result",
    "load_lab",
    "load_result",
    "load_sweep",
    "load_teaching",
    "remembered_of",
    "save_lab",
    "save_result",
    "save_sweep",
    "save_teaching",
]

FORMAT = 2

LEARNED = SOURCES[:2]
"""The sources that have parameters."""

COUNTED_TABLES = ("flows", "day_flows", "candidates", "held_out")
COUNTED_ARRAYS = ("transmats", "people")
COUNTED_PARTS = (
    "settings", "grid", "identifiability", "happened", "ensemble", "doubts", "remembered",
    "pattern", "typed_days", "gates", "known_beside",
)  # fmt: skip
ENSEMBLE_FILE = "ensemble.parquet"
REMEMBERED_FILE = "remembered.json"
DAYS_FILE = "happened_by_day.parquet"
PEOPLE_DAYS_FILE = "flows_by_day.parquet"
ERRORS_BY_DAY_FILE = "ensemble_by_day.parquet"
HAPPENED_FIGURES = ("r_hat", "n_eff", "method")
ENDS = ("low", "high")
HAPPENED_TABLES = {"flows": "happened.parquet", "day_flows": "happened_day.parquet"}
COUNTED_PLAIN = tuple(
    field.name
    for field in fields(CountStudy)
    if field.name not in (*COUNTED_TABLES, *COUNTED_ARRAYS, *COUNTED_PARTS)
)
"""What flows learned from counts are made of: tables, arrays, parts of their own, and the rest."""

COUNTED_LATER = tuple(
    field.name
    for field in fields(CountStudy)
    if field.name in COUNTED_PLAIN and field.default is not MISSING
)
"""What results saved before these were kept do not have."""

LATER_FILES = (
    "counted_steps.parquet",
    *HAPPENED_TABLES.values(),
    DAYS_FILE,
    PEOPLE_DAYS_FILE,
    ENSEMBLE_FILE,
    ERRORS_BY_DAY_FILE,
    REMEMBERED_FILE,
)
"""Files that results saved by earlier versions may lack."""

LONGEST_WINDOW, MOST_KINDS, LEAST_BOUND = 1_000, 8, 100_000
"""Steps of a window; sources of flows, or kinds of days; and numbers of whatever a result has
beside its moves: never more than these."""

DAMAGE = (
    OSError,
    EOFError,
    BadZipFile,
    zlib.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    NotImplementedError,
    RecursionError,
)
"""What the readers of JSON, Parquet and npz raise on files that are cut or altered."""


@dataclass(frozen=True)
class Codec:
    """Files of a kind of result, and who writes them into a folder and reads them back."""

    files: tuple[str, ...]
    save: Callable[[Any, Path], None]
    load: Callable[[dict[str, Any], ResultFiles], FlowResult]


def save_result(result: FlowResult, folder: str | os.PathLike[str]) -> None:
    """Write flows that were learned into a new folder: result.json, parameters.npz and tables.

    `CODECS` names the files of each kind of result.
    """
    with _whole(Path(folder)) as partial:
        CODECS[result.kind].save(result, partial)


@contextmanager
def _whole(folder: Path) -> Iterator[Path]:
    """A folder to fill that takes its name when all is written, or is not there at all."""
    partial = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    partial.mkdir(parents=True)
    try:
        yield partial
        os.replace(partial, folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def load_result(folder: str | os.PathLike[str]) -> FlowResult:
    """Read back what `save_result` wrote, now or in an earlier version, after checking its files.

    Raises
    ------
    InputError
        If a file is missing, altered, of another version, or unpacks to far more than it should.
    """
    return load_known_result(Path(folder), {})


def load_known_result(folder: Path, known: Mapping[str, SavedFile]) -> FlowResult:
    """The same of a result of whose files, by their names, somebody else keeps digests, too.

    Raises
    ------
    InputError
        As `load_result`, or if a file is not the one that is known.
    """
    with _readable():
        files = ResultFiles(folder, known)
        files.check()
        about = of_today(_about(files))
        # Results saved before their kind was told are known by what they have.
        kind = about.get("kind", StudyResult.kind if "times" in about else CountStudy.kind)
        return CODECS[kind].load(about, files)


def _save_study(result: StudyResult, partial: Path) -> None:
    arrays = _pattern_arrays(result)
    arrays |= {
        f"{source}_{name}_{i}": entries(getattr(getattr(found, source), name))
        for i, found in enumerate(result.by_time)
        for source in LEARNED
        for name in ("startprob", "transmat")
    }
    arrays |= {
        f"observed_{i}": found.observed
        for i, found in enumerate(result.by_time)
        if found.observed is not None
    }
    if result.step_ends is not None:
        ends = {(i, name): getattr(a, name) for i, a in enumerate(result.by_time) for name in ENDS}
        arrays |= {f"{name}_{i}": entries(end) for (i, name), end in ends.items()}
        arrays["step_ends"] = result.step_ends
    if result.ensemble is not None:
        write_table(result.ensemble.table, partial / ENSEMBLE_FILE)
    if result.by_day is not None:
        arrays |= _save_people_days(result.by_day, partial)
    write_arrays(arrays, partial / ARRAYS_FILE)
    write_table(result.counted_steps, partial / "counted_steps.parquet")
    write_json(partial / REMEMBERED_FILE, dict(result.remembered))
    write_result(partial, _to_json(result))


def _load_study(about: dict[str, Any], files: ResultFiles) -> StudyResult:
    settings = StudySettings.from_dict(about["settings"])
    n_days = len((about.get("by_day") or {}).get("dates", ()))
    _bound(files, about, about["n_states"], len(about["times"]), n_days, settings.window.length)
    # Results saved before flows were told by the chains have a table of them, too.
    counted_steps = files.table("counted_steps.parquet").rename(columns=KEYS)
    with files.arrays() as arrays:
        like = _pattern(settings.learn.reach_m, about["n_states"], arrays)
        by_time = tuple(
            _time_from_json(i, entry, arrays, like) for i, entry in enumerate(about["times"])
        )
        step_ends = arrays.get("step_ends")
        by_day = _people_days(about.get("by_day"), arrays, files)
    if like is not None:
        of_days = () if by_day is None else tuple(flows.table for flows in by_day.flows.values())
        for table in (counted_steps, *of_days):
            if (places_of(like, table["origin"], table["dest"]) < 0).any():
                raise ValueError("flows beyond the reach")
    return StudyResult(
        settings=settings,
        n_individuals=about["n_individuals"],
        n_states=about["n_states"],
        has_outside=about["has_outside"],
        dropped=about["dropped"],
        by_time=by_time,
        counted_steps=counted_steps,
        vs_single=_comparison(about["vs_single"]),
        vs_counted=_comparison(about["vs_counted"]),
        wall_s=about["wall_s"],
        # Results saved before the noise was learned do not tell it.
        noise=None if about.get("noise") is None else AllowedNoise(**about["noise"]),
        step_ends=step_ends,
        ensemble=_ensemble(about.get("ensemble"), files),
        by_day=by_day,
        chosen_days=tuple(about.get("chosen_days", ())),
        remembered=_remembered(files),
    )


PATTERN = ("indices", "indptr")


def _pattern_arrays(result: StudyResult) -> dict[str, Any]:
    """Which moves may be, where tables hold these alone: of each only its entries are kept then."""
    like = result.by_time[0].estimate.transmat
    if isinstance(like, np.ndarray):
        return {}
    return {f"pattern_{name}": getattr(like, name) for name in PATTERN}


def _pattern(reach_m: float | None, n_states: int, arrays: Any) -> sparse.csr_array | None:
    """The same back, checked; None where tables are whole.

    Raises
    ------
    ValueError
        If it is no pattern of moves between so many states.
    """
    if reach_m is None:
        if any(f"pattern_{name}" in arrays for name in PATTERN):
            raise ValueError("a pattern of tables that are whole")
        return None
    indices, indptr = (arrays[f"pattern_{name}"] for name in PATTERN)
    for array in (indices, indptr):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(array.dtype, array.shape)
    if len(indptr) != n_states + 1 or indptr[0] != 0 or indptr[-1] != len(indices):
        raise ValueError(indptr.shape)
    if (np.diff(indptr) < 0).any() or not ((indices >= 0) & (indices < n_states)).all():
        raise ValueError("moves from or to states that there are not")
    origin = np.repeat(np.arange(n_states), np.diff(indptr))
    if (np.diff(origin * n_states + indices) <= 0).any():
        raise ValueError("moves out of order")
    return sparse.csr_array((np.zeros(len(indices)), indices, indptr), shape=(n_states, n_states))


def _table(array: Any, like: sparse.csr_array | None) -> AnyMoves:
    """A table of these entries, which is whole where there is no pattern."""
    if like is None:
        whole: AnyMoves = array
        return whole
    if array.shape != like.data.shape or not np.isfinite(array).all():
        raise ValueError(array.shape)
    return moves_like(like, array.astype(np.float64))


def _save_people_days(by_day: PeopleDays, partial: Path) -> dict[str, Any]:
    """Write flows by day and their errors; returns the arrays that belong to them."""
    tables = [
        flows.table.assign(source=np.int8(SOURCES.index(source)))
        for source, flows in by_day.flows.items()
    ]
    write_table(pd.concat(tables, ignore_index=True), partial / PEOPLE_DAYS_FILE)
    arrays = _days_arrays(by_day.estimate, partial)
    arrays |= {"day_sequences": by_day.sequences, "day_groups": by_day.groups}
    return arrays | {f"day_observed_{i}": people for i, people in enumerate(by_day.observed)}


def _people_days(
    about: dict[str, Any] | None, arrays: Any, files: ResultFiles
) -> PeopleDays | None:
    """Flows of each day; results saved earlier, or of one day, do not have them."""
    if about is None:
        return None
    table = files.table(PEOPLE_DAYS_FILE)
    flows = {
        source: DayFlows(
            tuple(about["dates"]), arrays["day_steps"], about["n_states"],
            table.loc[table["source"] == number].drop(columns="source").reset_index(drop=True),
            *(_of_worlds(about, arrays, files) if source == ESTIMATE else ()),
        )
        for number, source in enumerate(SOURCES)
    }  # fmt: skip
    observed = tuple(arrays[f"day_observed_{i}"] for i in range(about["n_observed"]))
    return PeopleDays(flows, arrays["day_sequences"], arrays["day_groups"], observed)


def _about(files: ResultFiles) -> dict[str, Any]:
    about = files.about
    if about["format"] != FORMAT:
        raise InputError(
            f"This result was saved in format {about['format']}; this version reads {FORMAT}.",
            code="other-format-version",
        )
    return about


def _bound(
    files: ResultFiles,
    about: dict[str, Any],
    n_states: int,
    n_times: int,
    n_days: int,
    length: int = 1,
) -> None:
    """How large arrays and tables may be that belong to so many states, times, days and steps.

    Raises
    ------
    ValueError
        If there is none of them, or fewer.
    """
    worlds = (about.get("ensemble") or {}).get("draws", 0)
    if min(n_states, n_times, worlds + 1) < 1:
        raise ValueError(n_states, n_times, worlds)
    moves = n_times * n_states**2
    windows = (n_days + 1) * n_times * (n_states + LONGEST_WINDOW)
    files.room.elements = LEAST_BOUND + MOST_KINDS * moves + LONGEST_WINDOW * windows
    files.room.rows = LEAST_BOUND + MOST_KINDS * moves * (worlds + 1) * (n_days + 1) * length


@contextmanager
def _readable() -> Iterator[None]:
    """Whatever a damaged file raises is one sentence."""
    try:
        yield
    except DAMAGE as fault:
        if isinstance(fault, InputError):
            raise
        if isinstance(fault, FileError):
            raise InputError(
                f"The saved result is damaged: {fault}; run the learner again.",
                code="result-damaged",
            ) from fault
        raise InputError(
            "The saved result is damaged or incomplete; run the learner again.",
            code="result-damaged",
        ) from fault


def _save_counted(study: CountStudy, partial: Path) -> None:
    for name in COUNTED_TABLES:
        write_table(getattr(study, name), partial / f"{name}.parquet")
    if study.happened is not None:
        for name, file in HAPPENED_TABLES.items():
            write_table(getattr(study.happened, name), partial / file)
    if study.ensemble is not None:
        write_table(study.ensemble.table, partial / ENSEMBLE_FILE)
    arrays = {name: getattr(study, name) for name in COUNTED_ARRAYS}
    if study.pattern is not None:
        arrays |= {f"pattern_{name}": getattr(study.pattern, name) for name in PATTERN}
    by_day = None if study.happened is None else study.happened.by_day
    if by_day is not None:
        write_table(by_day.table, partial / DAYS_FILE)
        arrays |= _days_arrays(by_day, partial)
    write_arrays(arrays, partial / ARRAYS_FILE)
    write_json(partial / REMEMBERED_FILE, dict(study.remembered))
    write_result(partial, _counted_to_json(study))


def _load_counted(about: dict[str, Any], files: ResultFiles) -> CountStudy:
    days = ((about.get("happened") or {}).get("by_day") or {}).get("dates", ())
    n_states, n_days = len(about["cells"]) + about["has_outside"], max(len(days), about["n_days"])
    _bound(files, about, n_states, len(about["slots"]), n_days)
    found: dict[str, Any] = {name: files.table(f"{name}.parquet") for name in COUNTED_TABLES}
    with files.arrays() as arrays:
        found |= {name: arrays[name] for name in COUNTED_ARRAYS}
        happened = _happened(about.get("happened"), arrays, files)
        pattern = _pattern_of_counted(about, found["people"].shape[-1], arrays)
    plain = {name: about[name] for name in COUNTED_PLAIN if name not in COUNTED_LATER}
    plain |= {name: about[name] for name in COUNTED_LATER if name in about}
    found |= {name: tuple(v) if isinstance(v, list) else v for name, v in plain.items()}
    study = CountStudy(
        settings=CountLearnSettings.from_dict(about["settings"]),
        grid=None if about["grid"] is None else StudySettings.from_dict(about["grid"]).grid,
        identifiability=_identifiability(about["identifiability"]),
        happened=happened,
        ensemble=_ensemble(about.get("ensemble"), files),
        remembered=_remembered(files),
        # Results saved before the counts were held against what was learned have no doubts.
        doubts=tuple(Doubt(**doubt) for doubt in about.get("doubts", ())),
        pattern=pattern,
        # Results saved before days could be named do not tell their types.
        typed_days=None
        if about.get("typed_days") is None
        else DayTypes.from_dict(about["typed_days"]),
        gates=None if about.get("gates") is None else GatesBeside.from_dict(about["gates"]),
        # Results saved before anything could be known beside have nothing of it.
        known_beside=dict(about.get("known_beside") or {}),
        **found,
    )
    if study.people.shape[-1] != study.n_cells + study.has_outside:
        raise ValueError(study.people.shape)
    if pattern is not None:
        _check_within(study, pattern)
    return study


GATES_PLAIN = (
    "slots", "cells", "steps", "weights", "minutes_per_km", "excess", "matrix_weights",
    "learned", "n_days", "n_entered", "n_left", "n_filled", "left_out", "unusual", "closed",
    "notes", "wall_s", "step_minutes", "chosen_days",
)  # fmt: skip
"""What flows learned from gates are made of beside tables and arrays."""


def _save_gates(study: GateStudy, partial: Path) -> None:
    for name, file in HAPPENED_TABLES.items():
        write_table(getattr(study.happened, name), partial / file)
    if study.ensemble is not None:
        write_table(study.ensemble.table, partial / ENSEMBLE_FILE)
    arrays: dict[str, Any] = {"entries": study.entries, "exits": study.exits}
    by_day = study.happened.by_day
    if by_day is not None:
        write_table(by_day.table, partial / DAYS_FILE)
        arrays |= _days_arrays(by_day, partial)
    write_arrays(arrays, partial / ARRAYS_FILE)
    about = {
        "format": FORMAT,
        "kind": study.kind,
        "settings": study.settings.to_dict(),
        "grid": None if study.grid is None else StudySettings(grid=study.grid).to_dict(),
        "happened": {name: getattr(study.happened, name) for name in HAPPENED_FIGURES}
        | {"by_day": _days_to_json(by_day)},
        "ensemble": _ensemble_to_json(study.ensemble),
        **{name: _plain(getattr(study, name)) for name in GATES_PLAIN},
    }
    write_result(partial, about)


def _load_gates(about: dict[str, Any], files: ResultFiles) -> GateStudy:
    days = (about["happened"]["by_day"] or {}).get("dates", ())
    n_states = len(about["cells"])
    _bound(files, about, n_states, len(about["slots"]), max(len(days), about["n_days"]))
    with files.arrays() as arrays:
        sides = {name: arrays[name] for name in ("entries", "exits")}
        happened = _happened(about["happened"], arrays, files)
    if happened is None or any(
        side.shape != (len(about["slots"]), n_states) for side in sides.values()
    ):
        raise ValueError("entries and exits")
    plain: dict[str, Any] = {
        name: tuple(v) if isinstance(v := about[name], list) else v for name in GATES_PLAIN
    }
    plain["weights"] = {name: (float(w), float(sd)) for name, (w, sd) in about["weights"].items()}
    plain["closed"] = tuple((str(name), int(n)) for name, n in about["closed"])
    return GateStudy(
        settings=GateLearnSettings.from_dict(about["settings"]),
        grid=None if about["grid"] is None else StudySettings.from_dict(about["grid"]).grid,
        happened=happened,
        ensemble=_ensemble(about.get("ensemble"), files),
        **sides,
        **plain,
    )


def _pattern_of_counted(
    about: dict[str, Any], n_states: int, arrays: Any
) -> sparse.csr_array | None:
    """Moves within the reach of a study of counts, as ones; None where all were learned."""
    found = _pattern(about["settings"].get("reach_m"), n_states, arrays)
    return None if found is None else moves_like(found, np.ones(found.nnz))


def _check_within(study: CountStudy, pattern: sparse.csr_array) -> None:
    """Refuse chances and flows that are none of a pattern's moves.

    Raises
    ------
    ValueError
        If there are any.
    """
    if study.transmats.ndim != 2 or study.transmats.shape[1] != pattern.nnz:
        raise ValueError(study.transmats.shape)
    tables = [study.flows, study.day_flows]
    if study.happened is not None:
        tables += [study.happened.flows, study.happened.day_flows]
    for table in tables:
        if (places_of(pattern, table["origin"], table["dest"]) < 0).any():
            raise ValueError("flows beyond the reach")


def _counted_to_json(study: CountStudy) -> dict[str, Any]:
    condition = study.identifiability.condition
    return {
        "format": FORMAT,
        "kind": study.kind,
        "settings": study.settings.to_dict(),
        "grid": None if study.grid is None else StudySettings(grid=study.grid).to_dict(),
        # Of counts that are all 0 it is infinite, which JSON has no number for.
        "identifiability": asdict(study.identifiability)
        | {"condition": condition if np.isfinite(condition) else None},
        "happened": None
        if study.happened is None
        else {name: getattr(study.happened, name) for name in HAPPENED_FIGURES}
        | {"by_day": _days_to_json(study.happened.by_day)},
        "ensemble": _ensemble_to_json(study.ensemble),
        "doubts": [asdict(doubt) for doubt in study.doubts],
        "typed_days": None if study.typed_days is None else study.typed_days.to_dict(),
        "gates": None if study.gates is None else study.gates.to_dict(),
        "known_beside": dict(study.known_beside),
        **{name: _plain(getattr(study, name)) for name in COUNTED_PLAIN},
    }


def _identifiability(values: dict[str, Any]) -> Identifiability:
    condition = np.inf if values["condition"] is None else values["condition"]
    alike = tuple((int(a), int(b)) for a, b in values["alike"])
    return Identifiability(**values | {"condition": condition, "alike": alike})


def _days_to_json(by_day: DayFlows | None) -> dict[str, Any] | None:
    if by_day is None:
        return None
    errors = _ensemble_to_json(by_day.errors)
    return {"dates": list(by_day.dates), "n_states": by_day.n_states, "errors": errors}


def _by_day(about: dict[str, Any] | None, arrays: Any, files: ResultFiles) -> DayFlows | None:
    """What happened on each day; results saved earlier do not have it."""
    if about is None:
        return None
    told = _of_worlds(about, arrays, files)
    table, dates = files.table(DAYS_FILE), tuple(about["dates"])
    return DayFlows(dates, arrays["day_steps"], about["n_states"], table, *told)


def _days_arrays(by_day: DayFlows, partial: Path) -> dict[str, Any]:
    """Write the errors of days; returns the arrays that days have."""
    arrays: dict[str, Any] = {"day_steps": by_day.steps}
    if by_day.spread is not None:
        arrays |= {"spread_days": by_day.spread.n_days, "spread_ends": by_day.spread.ends}
    if by_day.errors is not None:
        write_table(by_day.errors.table, partial / ERRORS_BY_DAY_FILE)
    return arrays


def _of_worlds(
    about: dict[str, Any], arrays: Any, files: ResultFiles
) -> tuple[Spread | None, Ensemble | None]:
    """How far flows of days may be off; results saved before errors were kept have none."""
    spread = None
    if "spread_days" in arrays:
        spread = Spread(arrays["spread_days"], arrays["spread_ends"])
    return spread, _ensemble(about.get("errors"), files, ERRORS_BY_DAY_FILE)


def _happened(
    about: dict[str, Any] | None, arrays: Any, files: ResultFiles
) -> HappenedFlows | None:
    """What happened on the days that were counted; results saved earlier do not have it."""
    if about is None:
        return None
    # Results saved before effective sizes were found do not tell them.
    parts: dict[str, Any] = {name: about.get(name) for name in HAPPENED_FIGURES}
    parts |= {name: files.table(file) for name, file in HAPPENED_TABLES.items()}
    return HappenedFlows(**parts, by_day=_by_day(about.get("by_day"), arrays, files))


def _ensemble(
    about: dict[str, Any] | None, files: ResultFiles, file: str = ENSEMBLE_FILE
) -> Ensemble | None:
    """Errors of simulated worlds; results saved earlier, or without worlds, have none."""
    return None if about is None else Ensemble(**about, table=files.table(file))


def remembered_of(folder: Path) -> dict[str, Any]:
    """What trials of a saved result found; of one saved before that was kept, nothing."""
    path = folder / REMEMBERED_FILE
    return _findings(json.loads(path.read_text(encoding="utf-8")) if path.exists() else {})


def _remembered(files: ResultFiles) -> dict[str, Any]:
    return _findings(files.json(REMEMBERED_FILE) if files.has(REMEMBERED_FILE) else {})


def _findings(known: Any) -> dict[str, Any]:
    if not isinstance(known, dict):
        raise TypeError(known)
    return known


def _ensemble_to_json(ensemble: Ensemble | None) -> dict[str, int] | None:
    if ensemble is None:
        return None
    return {"draws": ensemble.draws, "n_states": ensemble.n_states}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def save_lab(result: LabResult, folder: Path) -> None:
    """Write what an experiment of the Lab found into a new folder: result.json, table.parquet."""
    with _whole(folder) as partial:
        write_table(result.table, partial / "table.parquet")
        about = {
            "format": FORMAT,
            "settings": result.settings.to_dict(),
            "trends": [asdict(trend) for trend in result.trends],
            "wall_s": result.wall_s,
            "notes": list(result.notes),
        }
        write_result(partial, about)


def load_lab(folder: Path) -> LabResult:
    """Read back what `save_lab` wrote.

    Raises
    ------
    InputError
        If a file is missing, damaged or of another version.
    """
    with _readable():
        files = ResultFiles(folder)
        files.check()
        about = _about(files)
        return LabResult(
            settings=LabSettings.from_dict(about["settings"]),
            table=files.table("table.parquet"),
            trends=tuple(Trend(**values) for values in about["trends"]),
            wall_s=about["wall_s"],
            notes=tuple(about["notes"]),
        )


def save_teaching(result: TeachingResult, folder: Path) -> None:
    """Write the flows at every group size into a new folder: result.json, flows.parquet."""
    with _whole(folder) as partial:
        write_table(result.flows, partial / "flows.parquet")
        about = {
            "format": FORMAT,
            "settings": result.settings.to_dict(),
            "true_moves": result.true_moves,
            "points": [
                {**asdict(point), "figures": point.figures.to_dict()} for point in result.points
            ],
            "wall_s": result.wall_s,
        }
        write_result(partial, about)


def load_teaching(folder: Path) -> TeachingResult:
    """Read back what `save_teaching` wrote.

    Raises
    ------
    InputError
        If a file is missing, damaged or of another version.
    """
    with _readable():
        files = ResultFiles(folder)
        files.check()
        about = _about(files)
        return TeachingResult(
            settings=TeachingSettings.from_dict(about["settings"]),
            true_moves=about["true_moves"],
            points=tuple(
                TeachingPoint(**{**values, "figures": _comparison(values["figures"])})
                for values in about["points"]
            ),
            flows=files.table("flows.parquet"),
            wall_s=about["wall_s"],
        )


SWEEP_WORDS = ("learner", "fault", "code")
"""What a row of a sweep says in words."""


def save_sweep(result: SweepResult, folder: Path) -> None:
    """Write what a sweep found into a new folder: result.json, parameters.npz with its figures."""
    with _whole(folder) as partial:
        figures = {
            name: np.array([getattr(row, name) for row in result.rows], dtype=np.float64)
            for name in FIGURES
        }
        write_arrays(figures, partial / ARRAYS_FILE)
        about = {
            "format": FORMAT,
            "kind": "sweep",
            "sweep": result.sweep.to_dict(),
            "rows": [{name: getattr(row, name) for name in SWEEP_WORDS} for row in result.rows],
            "wall_s": result.wall_s,
        }
        write_result(partial, about)


def load_sweep(folder: Path) -> SweepResult:
    """Read back what `save_sweep` wrote.

    Raises
    ------
    InputError
        If a file is missing, damaged or of another version.
    """
    with _readable():
        files = ResultFiles(folder)
        files.check()
        about = _about(files)
        sweep = Sweep.from_dict(about["sweep"])
        words, n_rows = about["rows"], len(sweep.values)
        files.room.elements = n_rows
        with files.arrays() as arrays:
            figures = {name: arrays[name] for name in FIGURES}
        if len(words) != n_rows or any(of.shape != (n_rows,) for of in figures.values()):
            raise ValueError("as many rows as values")
        rows = []
        for number, value in enumerate(sweep.values):
            of_row: dict[str, Any] = {n: float(of[number]) for n, of in figures.items()}
            of_row |= {name: str(words[number][name]) for name in SWEEP_WORDS}
            rows.append(SweepRow(value, **of_row))
        return SweepResult(sweep, tuple(rows), float(about["wall_s"]))


def _to_json(result: StudyResult) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "kind": result.kind,
        "settings": result.settings.to_dict(),
        "n_individuals": result.n_individuals,
        "n_states": result.n_states,
        "has_outside": result.has_outside,
        "dropped": dict(result.dropped),
        "vs_single": result.vs_single.to_dict(),
        "vs_counted": result.vs_counted.to_dict(),
        "wall_s": result.wall_s,
        "noise": None if result.noise is None else asdict(result.noise),
        "ensemble": _ensemble_to_json(result.ensemble),
        "by_day": None
        if result.by_day is None
        else {
            **(_days_to_json(result.by_day.estimate) or {}),
            "n_observed": len(result.by_day.observed),
        },
        "chosen_days": list(result.chosen_days),
        "times": [
            {
                "time": a.time,
                "n_sequences": a.n_sequences,
                "n_groups": a.n_groups,
                "estimate": _fit_to_json(a.estimate),
                "single": _fit_to_json(a.single),
                "vs_single": a.vs_single.to_dict(),
                "vs_counted": a.vs_counted.to_dict(),
            }
            for a in result.by_time
        ],
    }


def _fit_to_json(fit: Fit) -> dict[str, Any]:
    values = asdict(fit)
    del values["startprob"], values["transmat"]
    return values


def _time_from_json(
    i: int, entry: dict[str, Any], arrays: Any, like: sparse.csr_array | None
) -> TimeResult:
    if like is not None and any(
        arrays[f"{source}_startprob_{i}"].shape != like.shape[:1] for source in LEARNED
    ):
        raise ValueError("other states than moves")
    fits = {
        source: Fit(
            startprob=arrays[f"{source}_startprob_{i}"],
            transmat=_table(arrays[f"{source}_transmat_{i}"], like),
            **{
                **entry[source],
                "history": tuple(entry[source]["history"]),
                "learner": present_name(entry[source].get("learner", Fit.learner)),
            },
        )
        for source in LEARNED
    }
    return TimeResult(
        time=entry["time"],
        n_sequences=entry["n_sequences"],
        n_groups=entry["n_groups"],
        estimate=fits["estimate"],
        single=fits["single"],
        vs_single=_comparison(entry["vs_single"]),
        vs_counted=_comparison(entry["vs_counted"]),
        observed=arrays.get(f"observed_{i}"),
        **{name: _table(arrays[f"{name}_{i}"], like) for name in ENDS if f"{name}_{i}" in arrays},
    )


def _comparison(values: dict[str, float | None]) -> FlowComparison:
    return FlowComparison(**{k: float("nan") if v is None else v for k, v in values.items()})


CODECS: Mapping[str, Codec] = {
    StudyResult.kind: Codec(
        (
            "counted_steps.parquet",
            ENSEMBLE_FILE,
            ERRORS_BY_DAY_FILE,
            PEOPLE_DAYS_FILE,
            "parameters.npz",
            REMEMBERED_FILE,
            "result.json",
        ),
        _save_study,
        _load_study,
    ),
    CountStudy.kind: Codec(
        (
            *sorted(f"{name}.parquet" for name in COUNTED_TABLES),
            DAYS_FILE,
            ENSEMBLE_FILE,
            ERRORS_BY_DAY_FILE,
            *HAPPENED_TABLES.values(),
            "parameters.npz",
            REMEMBERED_FILE,
            "result.json",
        ),
        _save_counted,
        _load_counted,
    ),
    GateStudy.kind: Codec(
        (
            DAYS_FILE,
            ENSEMBLE_FILE,
            ERRORS_BY_DAY_FILE,
            *HAPPENED_TABLES.values(),
            "parameters.npz",
            "result.json",
        ),
        _save_gates,
        _load_gates,
    ),
}
"""How each kind of result is kept."""
