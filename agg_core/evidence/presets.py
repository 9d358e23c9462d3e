"""Criteria by which models are accepted, and whether flows are known to meet them.

Guidelines were written for vehicles on roads. What they ask of links is asked of counters here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.evidence.measures import geh, relative_difference, xy_fit
from agg_core.evidence.sums import Sums

__all__ = ["PRESETS", "SURE", "Criterion", "Preset", "Subject", "Verdict", "judge", "preset_of"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

Subject = Literal["screenlines", "counters", "cells", "trip ends", "lengths", "sectors", "total"]
"""What is held against counts: volumes across screenlines, at single counters, flows between cells,
people who leave and reach cells, mean and spread of lengths, flows between sectors, and the sum of
all counters, or of all moves where there are none."""

Answer = Literal["pass", "fail", "cannot be told"]

SURE = 0.95
"""Chance that a verdict is right with, where simulated worlds are like the true one."""

Holds = Callable[[FloatArray, FloatArray], BoolArray]
"""From values (..., K) and those counted (K,): which are within bounds, (..., K), or all, (..., 1).
"""


@dataclass(frozen=True)
class Criterion:
    """One thing that is asked: that a share of values is within bounds.

    ``words`` say it in a few words, ``share`` is the least part of the values of ``subject`` that
    ``holds`` must be true of; ``is_fit`` says that it is asked of all of them together.
    """

    subject: Subject
    words: str
    holds: Holds
    share: float = 1.0
    is_fit: bool = False


@dataclass(frozen=True)
class Preset:
    """The criteria of a guideline, and its ``source``."""

    key: str
    label: str
    source: str
    criteria: tuple[Criterion, ...]


@dataclass(frozen=True)
class Verdict:
    """What is known of a criterion.

    Attributes
    ----------
    criterion : what was asked
    n : values that it was asked of
    share : part of them within bounds, as estimated; of a fit 1 if it is, else 0
    met : whether that is enough, as estimated
    chance : share of draws of what may be true that meet it, small where many values must; None
        where no worlds were simulated
    answer : pass, fail or cannot be told
    """

    criterion: Criterion
    n: int
    share: float
    met: bool
    chance: float | None
    answer: Answer


def judge(
    criterion: Criterion,
    modelled: Sums,
    counted: FloatArray,
    slack: FloatArray | float = 0.0,
    nobody: int = 0,
) -> Verdict:
    """Ask a criterion of sums (K,) against counted ones, and of what may be true of them.

    It passes where nearly all draws of the sums meet it (`SURE`). It fails where nothing that they
    may be meets it: not even the values nearest to the counted ones, in intervals that hold all of
    them together with that chance (a value without an interval may be anything). That few draws
    meet it is not enough: of many values some are always off. Without worlds nothing is known of
    how far values may be off, and it cannot be told.

    Values no farther than ``slack`` (K,) from the counted ones equal them: people are whole.
    ``nobody`` more values are of nobody, whatever may be true, and were counted so: a fit goes
    through them, too, and of values within bounds they are such.

    Raises
    ------
    InputError
        If nothing was counted.
    """
    if not counted.size:
        raise InputError(
            f"Nothing was counted of {criterion.subject}, so that there is nothing to check; "
            "give counts of them.",
            code="nothing-counted",
        )
    least = criterion.share - 1e-12
    asked: Any = criterion.holds
    if criterion.is_fit and nobody:
        asked = partial(asked, nobody=nobody)

    def holds(values: FloatArray) -> BoolArray:
        equal = np.abs(values - counted) <= slack
        return np.asarray(asked(np.where(equal, counted, values), counted))

    def shares(values: FloatArray) -> FloatArray:
        met = holds(values)
        if criterion.is_fit:
            return np.asarray(met[..., 0], dtype=np.float64)
        return np.asarray((met.sum(axis=-1) + nobody) / (met.shape[-1] + nobody))

    share, drawn = float(shares(modelled.estimate)), modelled.drawn(shares)
    chance = None if drawn is None else float((drawn >= least).mean())
    ends = modelled.pooled_interval(1 - (1 - SURE) / (len(counted) + nobody))
    answer: Answer = "cannot be told"
    if chance is not None and chance >= SURE:
        answer = "pass"
    elif ends is not None:
        nearest = np.clip(counted, *ends)
        if float(shares(np.where(np.isnan(nearest), counted, nearest))) < least:
            answer = "fail"
    return Verdict(criterion, len(counted) + nobody, share, share >= least, chance, answer)


# Bounds


def within(share: float) -> Holds:
    """Whether values differ from counted ones by that share of these at most."""
    return lambda m, c: np.abs(relative_difference(m, c)) <= share


def geh_below(bound: float) -> Holds:
    """Whether GEH is below a bound."""
    return lambda m, c: geh(m, c) < bound


def _tag_link(m: FloatArray, c: FloatArray) -> BoolArray:
    """Within 100 an hour below 700, 15 % up to 2,700 and 400 an hour above."""
    allowed = np.where(c < 700, 100.0, np.where(c <= 2_700, 0.15 * c, 400.0))
    return np.asarray(np.abs(m - c) <= allowed)


def tag_flow_or_geh(m: FloatArray, c: FloatArray) -> BoolArray:
    """Either of the two that the guideline asks of links."""
    return np.asarray(_tag_link(m, c) | (geh(m, c) < 5))


def slope_and_r2(low: float, high: float, r2: float) -> Holds:
    """Whether the line of all values against the counted ones has such a slope and fit."""

    def holds(m: FloatArray, c: FloatArray, nobody: int = 0) -> BoolArray:
        fit = xy_fit(m, c, nobody)
        fits = (fit.slope >= low) & (fit.slope <= high) & (fit.r2 > r2)
        return np.asarray(fits)[..., None]

    return holds


_ATAP = "https://www.atap.gov.au/tools-techniques/travel-demand-modelling/appendix-c"
_TXDOT = "TxDOT Traffic and Safety Analysis Procedures Manual, 13.5.2.3, table 13-5"

_LIST = (
    Preset(
        "tag-m3.1", "TAG M3.1",
        "Department for Transport (UK), TAG unit M3.1, Highway Assignment Modelling, May 2020",
        (
            Criterion(
                "screenlines", "nearly all screenlines (95 %) within 5 % of the count",
                within(0.05), 0.95,
            ),
            Criterion(
                "counters", "85 % of counters within 100 an hour (below 700), 15 % (to 2,700) or "
                "400 an hour (above), or GEH below 5", tag_flow_or_geh, 0.85,
            ),
            Criterion(
                "cells", "flows between cells: slope 0.98 to 1.02, R² above 0.95",
                slope_and_r2(0.98, 1.02, 0.95), is_fit=True,
            ),
            Criterion(
                "trip ends", "trip ends: slope 0.99 to 1.01, R² above 0.98",
                slope_and_r2(0.99, 1.01, 0.98), is_fit=True,
            ),
            Criterion("lengths", "mean and spread of lengths within 5 %", within(0.05)),
            Criterion("sectors", "flows between sectors within 5 %", within(0.05)),
        ),
    ),
    Preset(
        "atap", "ATAP",
        f"Australian Transport Assessment and Planning, T1, appendix C ({_ATAP})",
        (
            Criterion("screenlines", "screenlines within 10 % of the count", within(0.10)),
            Criterion("counters", "counters within 20 % of the count", within(0.20)),
        ),
    ),
    Preset(
        "txdot", "TxDOT", f"{_TXDOT}; written for vehicles per hour and lane",
        (
            Criterion("screenlines", "GEH below 3 at all screenlines and cordons", geh_below(3)),
            Criterion("counters", "GEH below 5 at 85 % of counters", geh_below(5), 0.85),
            Criterion("total", "the sum of all counts within 5 %", within(0.05)),
        ),
    ),
)  # fmt: skip

PRESETS: Mapping[str, Preset] = {preset.key: preset for preset in _LIST}
"""Guidelines by key."""


def preset_of(key: str) -> Preset:
    """The preset of a key.

    Raises
    ------
    InputError
        If there is none.
    """
    if key not in PRESETS:
        raise InputError(
            f"There is no preset {key}; choose one of {', '.join(PRESETS)}.", code="unknown-preset"
        )
    return PRESETS[key]


def own_preset(*, screenlines: float, counters_geh: float, share: float) -> Preset:
    """Own values: screenlines within a share of the count, and a part of counters below a GEH.

    Raises
    ------
    InputError
        If a value is not above 0, or the part is above 1.
    """
    if not (screenlines > 0 and counters_geh > 0 and 0 < share <= 1):
        raise InputError(
            "Own criteria need values above 0, and a part of counters of up to 1; "
            f"they were {screenlines}, {counters_geh} and {share}.",
            code="value-out-of-range",
        )
    return Preset(
        "own", "own values", "chosen by whoever checks",
        (
            Criterion(
                "screenlines", f"screenlines within {screenlines:.0%} of the count",
                within(screenlines),
            ),
            Criterion(
                "counters", f"GEH below {counters_geh:g} at {share:.0%} of counters",
                geh_below(counters_geh), share,
            ),
        ),
    )  # fmt: skip
