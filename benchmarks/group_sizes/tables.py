"""Rows of measurements to means over seeds, and to plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.tables.flows import compare_flows
from benchmarks.group_sizes.learners import REFERENCE

__all__ = [
    "FAULT",
    "Row",
    "Table",
    "attempted",
    "expected_flows",
    "flow_figures",
    "real_data",
    "simulated_counts",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

Row = dict[str, Any]

FAULT = "fault"
"""Column of a row that holds why there are no figures."""

ALL = "all"


@dataclass(frozen=True)
class Table:
    """A table: what it measures, from which settings, and how its rows are summed up.

    ``measure`` takes the settings and yields a row per learner and case, a case being a value of
    each column of ``case``. ``groupings`` are the columns that means are taken by, beside the
    learner; ``figures`` are measured columns; of ``ratio_of`` the mean is also given relative
    to that of CFB in the same cases.
    """

    name: str
    title: str
    settings: type
    measure: Callable[[Any], Iterator[Row]]
    case: tuple[str, ...]
    groupings: tuple[tuple[str, ...], ...]
    figures: tuple[str, ...]
    ratio_of: str | None = None

    def rows(self, settings: Any) -> pd.DataFrame:
        """All measurements: case, learner, figures and what failed."""
        return self.framed(self.measure(settings))

    def framed(self, rows: Iterable[Row]) -> pd.DataFrame:
        """Rows as a data frame with all columns of this table."""
        frame = pd.DataFrame(list(rows))
        columns = [*self.case, "learner", *self.figures]
        frame = frame.reindex(columns=[*columns, FAULT])
        frame[FAULT] = frame[FAULT].astype(object).fillna("")
        return frame.astype(dict.fromkeys(self.figures, float))

    def summary(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Mean and standard deviation (``_sd``) of each figure, by grouping and learner.

        ``n`` counts the rows that have figures, ``failed`` those that have none.
        """
        if self.ratio_of is not None:
            rows = _beside_reference(rows, self.case, self.ratio_of)
        parts = [self._by(rows, grouping) for grouping in self.groupings]
        wanted = [name for name in self.case if any(name in g for g in self.groupings)]
        summary = pd.concat(parts, ignore_index=True)
        others = [name for name in summary.columns if name not in wanted]
        return summary.reindex(columns=[*wanted, *others])

    def _by(self, rows: pd.DataFrame, grouping: tuple[str, ...]) -> pd.DataFrame:
        found = []
        blocks = rows.groupby(list(grouping)) if grouping else [((), rows)]
        for values, block in blocks:
            for learner, part in block.groupby("learner", sort=False):
                line: Row = dict(zip(grouping, values, strict=True))
                found.append({**line, "learner": learner, **self._means(part)})
        return pd.DataFrame(found)

    def _means(self, part: pd.DataFrame) -> Row:
        line: Row = {}
        for figure in self.figures:
            line[figure], line[f"{figure}_sd"] = part[figure].mean(), part[figure].std(ddof=1)
        if self.ratio_of is not None:
            line[f"ratio_to_{REFERENCE}"] = _ratio_of_means(part[self.ratio_of], part["base"])
        failed = int((part[FAULT] != "").sum())
        return {**line, "n": len(part) - failed, "failed": failed}

    def heading(self, settings: Any) -> str:
        """The title and all settings."""
        values = ", ".join(f"{k} = {_plain(v)}" for k, v in asdict(settings).items())
        return f"{self.title}\n{values}"

    def text(self, summary: pd.DataFrame) -> str:
        """The summary for a person to read: mean ± standard deviation."""
        shown = summary.copy()
        for figure in self.figures:
            sd = shown.pop(f"{figure}_sd")
            shown[figure] = [_cell(m, s) for m, s in zip(shown[figure], sd, strict=True)]
        for name in [n for n in shown.columns if n not in self.figures]:
            if shown[name].dtype == object or name in self.case:
                shown[name] = shown[name].map(_key)
            elif shown[name].dtype == float:
                shown[name] = shown[name].map(lambda value: _cell(value, np.nan))
        if not shown["failed"].any():
            shown = shown.drop(columns="failed")
        return str(shown.to_string(index=False))


def _beside_reference(rows: pd.DataFrame, case: tuple[str, ...], figure: str) -> pd.DataFrame:
    """Rows with the column ``base``: the figure of CFB in the same case."""
    base = rows.loc[rows["learner"] == REFERENCE, [*case, figure]]
    return rows.merge(base.rename(columns={figure: "base"}), on=list(case), how="left")


def _ratio_of_means(values: pd.Series, base: pd.Series) -> float:
    both = values.notna() & base.notna()
    below = base[both].mean()
    return float(values[both].mean() / below) if below else float("nan")


def _plain(value: Any) -> str:
    return " ".join(_plain(v) for v in value) if isinstance(value, tuple) else str(value)


def _key(value: Any) -> str:
    if isinstance(value, float):
        return ALL if np.isnan(value) else f"{value:g}"
    return str(value)


def _cell(mean: float, deviation: float) -> str:
    if np.isnan(mean):
        return "-"
    return f"{mean:.4g}" + ("" if np.isnan(deviation) else f" ± {deviation:.2g}")


def attempted(case: Row, measure: Callable[..., Row], *arguments: Any) -> Row:
    """The row of a case: the figures that ``measure`` finds, or the sentence why there are none."""
    try:
        return {**case, **measure(*arguments)}
    except InputError as fault:
        return {**case, FAULT: str(fault)}


# --------------------------------------------------------------------------- what tables share


def real_data(name: str) -> Path:
    """A file or folder of the real data that lies beside the repository.

    Raises
    ------
    InputError
        If it is not there.
    """
    path = Path(__file__).resolve().parents[3] / "shared" / "data" / name
    if not path.exists():
        raise InputError(
            f"The real data is not there: this table needs ../shared/data/{name} beside the "
            "repository."
        )
    return path


def simulated_counts(
    startprob: FloatArray,
    transmat: FloatArray,
    sizes: IntArray,
    length: int,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """Groups of people who walk by a chain, by multinomial splits, not one by one.

    Returns
    -------
    counts (K, T, d) of people per group, step and state, and moves (d, d) from row to column,
    summed over groups and steps.
    """
    d = len(startprob)
    counts = np.empty((len(sizes), length, d), dtype=np.int64)
    moves = np.zeros((d, d), dtype=np.int64)
    counts[:, 0] = rng.multinomial(sizes, startprob)
    for t in range(1, length):
        splits = rng.multinomial(counts[:, t - 1], transmat)
        moves += splits.sum(axis=0)
        counts[:, t] = splits.sum(axis=1)
    return counts, moves


def expected_flows(
    startprob: FloatArray, transmat: FloatArray, people: float, length: int
) -> FloatArray:
    """Moves (d, d) from row to column that a chain makes in ``length`` steps, stays among them."""
    at, origins = people * startprob, np.zeros_like(startprob)
    for _ in range(length - 1):
        origins = origins + at
        at = at @ transmat
    return np.asarray(origins[:, None] * transmat)


def flow_figures(estimate: npt.ArrayLike, truth: npt.ArrayLike) -> dict[str, float]:
    """CPC of moves, CPC with stays, and all estimated moves over all true ones."""
    e, t = np.asarray(estimate, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    moves = compare_flows(e, t)
    return {
        "cpc": moves.cpc,
        "cpc_with_stays": float(2 * np.minimum(e, t).sum() / (e.sum() + t.sum())),
        "total_ratio": moves.total_ratio,
    }
