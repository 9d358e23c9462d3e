"""Each source's pull: how far flows and their intervals move when a source is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.errors import InputError
from agg_core.study.beside import TwoResults, two_results
from agg_core.study.result import FlowResult
from agg_core.tables.flows import common_part, ratio

__all__ = ["ENDS", "Pull", "pull_of"]

FloatArray = npt.NDArray[np.float64]

ENDS = ("origin", "dest")


@dataclass(frozen=True)
class Pull:
    """What flows would be without each of some sources, beside what they are with all of them.

    Attributes
    ----------
    flows : a row for each source that is left out and each time, the mean of the day first:
        source, time, n_movers (people per step who go to another state, with all sources),
        n_movers_without, moved (sum of absolute differences of moves over the sum with all
        sources: 0 where the source tells nothing more), cpc (common part of commuters) and width
        (how many times as wide the intervals of moves above the threshold are without the source,
        their mean over that with it; nan where flows have none)
    places : the same by state: source, time, place, end (origin: of those who leave it, dest: who
        come to it), count and count_without (people per step), and moved
    """

    flows: pd.DataFrame
    places: pd.DataFrame

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that were left out, the one that pulls most first."""
        most = self.flows.groupby("source", sort=False)["moved"].first()
        return tuple(most.sort_values(ascending=False, kind="stable").index)


def pull_of(
    result: FlowResult, without: Mapping[str, FlowResult], times: Sequence[str] | None = None
) -> Pull:
    """Hold flows that were learned from all sources against those learned without one.

    ``without`` has results of the same cells and steps by the name of the source that each lacks.
    ``times`` are those to compare; without, all that every pair of results has in common.

    Raises
    ------
    InputError
        If no result is given, cells or steps differ, or there is no such time.
    """
    if not without:
        raise InputError(
            "Give one run or more that was learned without a source.", code="nothing-chosen"
        )
    flows, places = [], []
    for source, other in without.items():
        both = two_results(result, other)
        for time in both.times if times is None else times:
            result.check(time)
            other.check(time)
            moves = _moves(both, time)
            flows.append({"source": source, "time": time, **_figures(moves, result.threshold)})
            places.append(_by_place(both, moves).assign(source=source, time=time))
    columns = ["source", "time", "place", "end", "count", "count_without", "moved"]
    table = pd.concat(places, ignore_index=True)[columns]
    return Pull(pd.DataFrame(flows), table)


def _moves(both: TwoResults, time: str) -> pd.DataFrame:
    """Moves of both results at a time, with the widths of their intervals as far as known."""
    sides = []
    for which in range(len(both.results)):
        rows = both.rows(which, time)
        rows = rows.loc[rows["origin"] != rows["dest"]]
        width = rows["high"] - rows["low"] if "high" in rows else np.nan
        sides.append(rows[["origin", "dest", "count"]].assign(width=width))
    return sides[0].merge(
        sides[1], how="outer", on=["origin", "dest"], suffixes=("", "_without")
    ).fillna({"count": 0.0, "count_without": 0.0})  # fmt: skip


def _figures(moves: pd.DataFrame, threshold: float) -> dict[str, float]:
    count, other = moves["count"].to_numpy(), moves["count_without"].to_numpy()
    large = (moves["count"] > threshold) & moves[["width", "width_without"]].notna().all(axis=1)
    widths = moves.loc[large, ["width", "width_without"]].sum()
    return {
        "n_movers": float(count.sum()),
        "n_movers_without": float(other.sum()),
        "moved": ratio(float(np.abs(count - other).sum()), float(count.sum())),
        "cpc": common_part(count, other),
        "width": ratio(float(widths["width_without"]), float(widths["width"])),
    }


def _by_place(both: TwoResults, moves: pd.DataFrame) -> pd.DataFrame:
    names = both.results[0].states.names[: both.n_states]
    apart = (moves["count"] - moves["count_without"]).abs()
    parts = []
    for end in ENDS:
        sums = {
            name: np.bincount(moves[end], values, minlength=both.n_states)
            for name, values in (
                ("count", moves["count"]), ("count_without", moves["count_without"]),
                ("apart", apart),
            )
        }  # fmt: skip
        moved = np.divide(
            sums["apart"], sums["count"], out=np.full(both.n_states, np.nan),
            where=sums["count"] > 0,
        )  # fmt: skip
        parts.append(pd.DataFrame({
            "place": names, "end": end, "count": sums["count"],
            "count_without": sums["count_without"], "moved": moved,
        }))  # fmt: skip
    return pd.concat(parts, ignore_index=True)
