"""Tables of experiments: their columns and names, where curves end, and what they show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.learn.table import AUTO, LEARNERS, PAPERS, VARIANTS, Learner

__all__ = [
    "CALIBRATED",
    "LEARNER_LABELS",
    "ON_STATES",
    "RUN_COLUMNS",
    "SYMBOLS",
    "Trend",
    "final_rows",
    "final_table",
    "listed",
    "row_of",
    "setting_text",
    "trends_of",
]

FloatArray = npt.NDArray[np.float64]

RUN_COLUMNS = ["n_states", "group_size", "n_individuals", "length", "learner", "seed"]
"""What tells one run of an experiment from another."""

SYMBOLS = {"n_states": "d", "group_size": "M", "n_individuals": "N", "length": "T"}

CALIBRATED, ON_STATES = VARIANTS
"""Endings of the learners whose E-step one simulated replicate an iteration corrects, and of those
that are given Poisson readings of the counts of states."""


def row_of(learner: str) -> Learner:
    """The row of the table of learners of a learner of the Lab."""
    return LEARNERS[learner.removesuffix(ON_STATES).removesuffix(CALIBRATED)]


def _labels() -> dict[str, str]:
    """The paper's learner first, then its rivals, what is best for the data, and the baselines."""
    rows = sorted(LEARNERS.values(), key=lambda row: row.name != PAPERS)
    rows = [row for row in rows if row.single and row.groups]
    plain = {row.name: row.short for row in rows if row.name != AUTO and not row.readings}
    calibrated = {
        row.name + CALIBRATED: f"{row.short}, calibrated" for row in rows if row.calibrated
    }
    baselines = [row for row in rows if row.readings]
    return {
        **plain,
        **calibrated,
        AUTO: LEARNERS[AUTO].short,
        **{row.name: f"{row.short}, counts of symbols" for row in baselines},
        **{row.name + ON_STATES: f"{row.short}, Poisson counts of states" for row in baselines},
    }


LEARNER_LABELS = _labels()
"""What a person reads for a learner. Counts of symbols are the data that CFB has, with the emission
as noise map; Poisson counts of states are what the paper most likely gave these learners."""

BASELINES = tuple(row.name for row in LEARNERS.values() if row.readings)

BEYOND = tuple(name for name in LEARNER_LABELS if row_of(name).beyond or name.endswith(CALIBRATED))
"""Learners that go beyond the paper's."""

OVERFIT_MARGIN = 0.01
"""A curve turns up again if it ends this far above its lowest value, in nats per person."""

FEW_PEOPLE = 500
"""The paper sees overfitting below this many individuals."""


@dataclass(frozen=True)
class Trend:
    """Something that is said of an experiment, held against a table.

    ``holds`` is the verdict on the averages over seeds; ``n_holding`` of ``n_seeds`` seeds show
    it each on their own; ``sentence`` gives the figures. The paper says it, unless it is ``ours``.
    """

    claim: str
    holds: bool
    n_seeds: int
    n_holding: int
    sentence: str
    ours: bool = False


def final_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The last row of each run."""
    ordered = table.sort_values("iteration", kind="stable")
    return ordered.groupby(RUN_COLUMNS, as_index=False, sort=True).last()


def final_table(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation of ΔNLL at the end, and mean seconds of learning, over seeds.

    There is no deviation of one value, or where one is infinite.
    """
    by = [name for name in RUN_COLUMNS if name != "seed"]
    grouped = final_rows(table).groupby(by, sort=False)
    return grouped.agg(
        delta_nll=("delta_nll", "mean"),
        sd=("delta_nll", _deviation),
        wall_s=("wall_s", "mean"),
        n_seeds=("seed", "size"),
    ).reset_index()


def _deviation(values: pd.Series) -> float:
    finite = len(values) > 1 and bool(np.isfinite(values).all())
    return float(values.std(ddof=1)) if finite else np.nan


def trends_of(experiment: str, table: pd.DataFrame) -> tuple[Trend, ...]:
    """What is said of an experiment, each claim held against the table of a `LabResult`.

    The paper's claims are held against each learner by itself; where CFB runs beside learners that
    go beyond it, they are held against CFB. A claim about a comparison is left out where the table
    holds nothing to compare.
    """
    ours = [replace(trend, ours=True) for trend in _trends_beside_cfb(table)]
    return (*TRENDS[experiment](table), *ours)


def _trends_by_group_size(table: pd.DataFrame) -> Iterator[Trend]:
    for where, _, ends in _compared(table, "group_size"):
        claim = f"{where}: M = {ends.columns[0]:,} ends lowest."
        yield _verdict(claim, ends, _first_is_least, _ends_at("group_size", ends))
        claim = f"{where}: the larger the groups, the higher the end."
        yield _verdict(claim, ends, _rises, _ends_at("group_size", ends))


def _trends_by_length(table: pd.DataFrame) -> Iterator[Trend]:
    for where, _, ends in _compared(table, "length"):
        claim = f"{where}: the longer the sequences, the lower the end."
        yield _verdict(claim, ends, _falls, _ends_at("length", ends))
        # A longer test sequence adds up the errors of more steps; this is the other yardstick.
        per_step = ends.div(ends.columns.to_numpy(), axis=1)
        claim = f"{where}: the longer the sequences, the lower the end per step."
        yield _verdict(claim, per_step, _falls, _ends_at("length", per_step) + " and step")
    for where, _, ends in _compared(table, "group_size"):
        claim = f"{where}: the larger the groups, the higher the end."
        yield _verdict(claim, ends, _rises, _ends_at("group_size", ends))


def _trends_by_people(table: pd.DataFrame) -> Iterator[Trend]:
    for where, part, ends in _compared(table, "n_individuals"):
        claim = f"{where}: the more individuals, the lower the end."
        yield _verdict(claim, ends, _falls, _ends_at("n_individuals", ends))
        rise = _rise_at_the_end(part)
        figures = "from its lowest value to its end a curve rises by " + _figures(
            [f"at N = {n:,}" for n in rise.columns], rise
        )
        for n in (int(n) for n in rise.columns if int(n) < FEW_PEOPLE):
            claim = f"{where}: with N = {n:,} the curve turns up again (overfitting)."
            yield _verdict(claim, rise[[n]], lambda row: row[0] > OVERFIT_MARGIN, figures)


def _rise_at_the_end(table: pd.DataFrame) -> pd.DataFrame:
    """How far curves end above their lowest value, seeds x individuals."""
    rows = final_rows(table)
    lowest = table.groupby(RUN_COLUMNS, sort=True)["delta_nll"].min().to_numpy()
    ends = rows["delta_nll"].to_numpy()
    rise = np.subtract(ends, lowest, out=np.zeros(len(ends)), where=np.isfinite(lowest))
    return rows.assign(rise=rise).pivot(index="seed", columns="n_individuals", values="rise")


def _trends_by_learner(table: pd.DataFrame) -> Iterator[Trend]:
    for where, part, ends in _compared(table, "learner"):
        for ending, kind in (("", "counts of symbols"), (ON_STATES, "Poisson counts of states")):
            rivals = [name + ending for name in BASELINES if name + ending in ends]
            if rivals and PAPERS in ends:
                names = listed([_short(name) for name in rivals])
                yield _lower(f"{where}: CFB ends below {names} ({kind}).", ends, rivals)
                claim = f"{where}: CFB gets there sooner than {names} ({kind})."
                yield _sooner(claim, part, ends, rivals)


def _trends_of_loss(table: pd.DataFrame) -> Iterator[Trend]:
    for where, _, ends in _compared(table[table["learner"] == PAPERS], "group_size"):
        few, many = ends.columns[[0, -1]]
        claim = f"{where}: CFB ends higher at M = {many:,} than at M = {few:,}."
        loss = _verdict(claim, ends[[few, many]], _rises, _ends_at("group_size", ends))
        yield replace(loss, ours=True)


def _trends_beside_cfb(table: pd.DataFrame) -> Iterator[Trend]:
    """Learners beyond the paper's against CFB at all M above 1, where something is hidden."""
    groups = table[table["group_size"] > 1]
    for where, part in _settings(groups, apart=("group_size", "learner")):
        rows = final_rows(part)
        by_learner = {
            str(name): runs.pivot(index="seed", columns="group_size", values="delta_nll")
            for name, runs in rows.groupby("learner")
        }
        for name in BEYOND:
            if name in by_learner and PAPERS in by_learner:
                yield _below(where, name, by_learner[name], by_learner[PAPERS])


def _below(where: str, learner: str, mine: pd.DataFrame, cfb: pd.DataFrame) -> Trend:
    """Whether a learner ends below CFB at each group size (columns)."""
    sizes = listed([f"{size:,}" for size in cfb.columns])
    triples = zip(mine.mean(), cfb.mean(), cfb.columns, strict=True)
    at = [f"{own:.3g} against {theirs:.3g} at M = {size:,}" for own, theirs, size in triples]
    return _verdict(
        f"{where}: {LEARNER_LABELS[learner]} ends below CFB at M = {sizes}.",
        mine - cfb, lambda row: bool((row < 0).all()),
        f"curves end at {listed(at)} nats per person",
    )  # fmt: skip


def _lower(claim: str, ends: pd.DataFrame, rivals: list[str]) -> Trend:
    chosen = ends[[PAPERS, *rivals]]
    names = [f"({_short(name)})" for name in chosen.columns]
    return _verdict(claim, chosen, _first_is_least, "curves end at " + _figures(names, chosen))


def _sooner(claim: str, table: pd.DataFrame, ends: pd.DataFrame, rivals: list[str]) -> Trend:
    """Who first comes down to the level that both reach: the higher of the two ends."""
    # Two columns a rival: when CFB was there, and when the rival was.
    times, figures = [], []
    for rival in rivals:
        level = ends[[PAPERS, rival]].max(axis=1)
        pair = [_first_below(table, name, level) for name in (PAPERS, rival)]
        times += pair
        figures.append(f"{pair[0].mean():.2g} s against {pair[1].mean():.2g} s ({_short(rival)})")
    return _verdict(
        claim, pd.concat(times, axis=1), lambda row: bool((row[::2] < row[1::2]).all()),
        f"to the higher of the two ends it learns for {listed(figures)}",
    )  # fmt: skip


def _first_below(table: pd.DataFrame, learner: str, level: pd.Series) -> pd.Series:
    """Seconds of learning until a curve first is at the level of its seed."""
    curves = table[table["learner"] == learner]
    there = curves["delta_nll"] <= curves["seed"].map(level)
    return curves[there].groupby("seed")["wall_s"].min()


TRENDS: dict[str, Callable[[pd.DataFrame], Iterator[Trend]]] = {
    "fig3": _trends_by_group_size,
    "fig4": _trends_by_group_size,
    "fig5": _trends_by_length,
    "fig6": _trends_by_people,
    "fig7": _trends_by_learner,
    "groups": _trends_of_loss,
}


def _settings(table: pd.DataFrame, apart: tuple[str, ...]) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each setting of the columns but those ``apart``; the name says what varies."""
    others = [name for name in RUN_COLUMNS if name not in (*apart, "seed")]
    named = [name for name in others if table[name].nunique() > 1] or ["n_states"]
    for values, part in table.groupby(others, sort=False):
        setting = dict(zip(others, values, strict=True))
        yield ", ".join(setting_text(name, setting[name]) for name in named), part


def _compared(table: pd.DataFrame, column: str) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """What can be compared: a name, the rows, and where they end, seeds x values of the column."""
    for where, part in _settings(table, apart=(column,)):
        ends = final_rows(part).pivot(index="seed", columns=column, values="delta_nll")
        if ends.shape[1] > 1:
            yield where, part, ends


def _verdict(
    claim: str, values: pd.DataFrame, test: Callable[[FloatArray], bool], figures: str
) -> Trend:
    """Whether the mean over seeds, and how many of the seeds (rows), pass the test."""
    rows = values.to_numpy(dtype=np.float64)
    n_holding = sum(bool(test(row)) for row in rows)
    holds = bool(test(rows.mean(axis=0)))
    how = "Holds on average and in" if holds else "Does not hold on average; it does in"
    sentence = f"{how} {n_holding} of {len(rows)} seeds: {figures}."
    return Trend(claim, holds, len(rows), n_holding, sentence)


def _first_is_least(row: FloatArray) -> bool:
    return bool((row[0] < row[1:]).all())


def _rises(row: FloatArray) -> bool:
    return bool((row[:-1] < row[1:]).all())


def _falls(row: FloatArray) -> bool:
    return bool((row[:-1] > row[1:]).all())


def _ends_at(column: str, ends: pd.DataFrame) -> str:
    at = [f"at {setting_text(column, value)}" for value in ends.columns]
    return "curves end at " + _figures(at, ends)


def _figures(names: list[str], values: pd.DataFrame) -> str:
    """Means over seeds with their names; values are in nats per person."""
    means = values.mean(axis=0)
    return (
        listed([f"{mean:.3g} {name}" for mean, name in zip(means, names, strict=True)])
        + " nats per person"
    )


def setting_text(column: str, value: Any) -> str:
    """A value of a column of the table as a person reads it."""
    return LEARNER_LABELS[value] if column == "learner" else f"{SYMBOLS[column]} = {value:,}"


def _short(learner: str) -> str:
    """The name of a learner without its data."""
    return row_of(learner).short


def listed(words: list[str]) -> str:
    """Words as a sentence has them."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
