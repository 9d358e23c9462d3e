"""Flows from counts as if they had been learned, written by hand on the 3 x 3 grid of `tiny`."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from agg_core.counts import days
from agg_core.counts.checks import Doubt
from agg_core.counts.identify import Identifiability
from agg_core.study.counts import CountStudy, HappenedFlows
from agg_core.study.result import WHOLE_DAY
from agg_core.study.settings import CountLearnSettings
from agg_core.tables.certainty import SIZES
from agg_core.tables.ensemble import KEYS_BY_DAY, Ensemble, columns_of
from tests.agg_core import tiny

MORNING, NIGHT = "08:00", "23:00"
OUT = 9

FLOWS = {
    MORNING: {
        (0, 1): (6.0, 4.5, 7.5, True),
        (1, 0): (1.0, 0.0, 3.0, False),
        (0, 0): (20.0, 18.0, 22.0, True),
        (0, OUT): (1.5, 1.0, 2.0, True),
        (OUT, 4): (0.25, 0.0, 1.0, False),
        (2, 5): (0.0, 0.0, 0.5, False),
    },
    NIGHT: {(4, 0): (9.0, 8.0, 10.0, True), (3, 3): (30.0, 29.0, 31.0, True)},
}
DAY = {
    (0, 1): (3.0, 2.0, 4.0, True),
    (4, 0): (4.5, 4.0, 5.0, True),
    (3, 3): (15.0, 14.0, 16.0, True),
    (0, OUT): (0.75, 0.5, 1.0, True),
}
"""What usually happens: people per step by origin and dest: count, low, high, resolved."""

HAPPENED = {
    MORNING: {
        (0, 1): (8.0, 6.5, 9.5, True),
        (1, 0): (0.5, 0.0, 2.0, False),
        (0, 0): (18.0, 16.0, 20.0, True),
        (0, OUT): (2.5, 1.5, 3.5, True),
        (5, 2): (4.0, 3.0, 5.0, True),
    },
    NIGHT: {(4, 0): (7.0, 6.0, 8.0, True), (3, 3): (32.0, 31.0, 33.0, True)},
}
HAPPENED_DAY = {
    (0, 1): (4.0, 3.0, 5.0, True),
    (4, 0): (3.5, 3.0, 4.0, True),
    (3, 3): (16.0, 15.0, 17.0, True),
    (5, 2): (2.25, 0.0, 4.75, False),
}
"""What happened."""


def rows(flows):
    """Flows as the columns of a study of counts."""
    return pd.DataFrame(
        [
            {"origin": o, "dest": d, "count": count, "low": low, "high": high, "resolved": sure}
            for (o, d), (count, low, high, sure) in flows.items()
        ]
    )


def timed(flows):
    """Flows by time of day as the columns of a study of counts."""
    slots = [rows(flows[MORNING]).assign(slot=0), rows(flows[NIGHT]).assign(slot=2)]
    return pd.concat(slots, ignore_index=True)


@cache
def study():
    """As saved before what happened was found: two of three times have flows; people come and go.

    Cells have places.
    """
    rng = np.random.default_rng(0)
    return CountStudy(
        settings=CountLearnSettings(threshold=2.0),
        slots=(MORNING, "12:00", NIGHT),
        grid=tiny.GRID,
        cells=tuple(f"cell {i}" for i in range(9)),
        has_outside=True,
        transmats=rng.dirichlet(np.ones(10), (3, 10)),
        people=rng.random((3, 10)),
        flows=timed(FLOWS),
        day_flows=rows(DAY),
        candidates=pd.DataFrame(
            {"learner": ["drawn"], "prior": [5.0], "hours": [np.nan], "own": [np.nan],
             "score": [-3.5], "chosen": [True]}
        ),
        held_out=pd.DataFrame(
            {"method": ["learned", "persistence", "gravity"], "mae": [1.0, 2.0, 3.0],
             "rmse": [1.5, 2.5, 3.5], "score": [-4.0, np.nan, -6.0]}
        ),
        identifiability=Identifiability(10, 50, 10, 12.5, ((0, 1), (4, 9))),
        learner="drawn",
        choice="cells hold few people",
        n_pairs=50,
        n_days=7,
        n_left_out=3,
        n_filled=11,
        wall_s=1.25,
    )  # fmt: skip


DOUBTS = (
    Doubt("event", "One step is far from what is usual then; look at it.", 9.5, 0.004),
    Doubt("growth", "People grow; learn from fewer days.", 0.25, 0.001),
)


def doubted():
    """The same, which the counts contradict in two ways."""
    return replace(both(), doubts=DOUBTS)


def both(r_hat=1.01, n_eff=400.0):
    """The same with what happened on the days that were counted."""
    happened = HappenedFlows(timed(HAPPENED), rows(HAPPENED_DAY), r_hat, "drawn", n_eff)
    return replace(study(), happened=happened)


STEPS = (4, 0, 5)
ERRORS = [
    (0, 0, 0, 1, 2.0, 4.0),
    (0, 2, 4, 0, -5.0, 10.0),
    (1, 0, 0, 1, -6.0, 0.0),
    (1, 0, 5, 2, 4.0, -8.0),
    (2, 0, 0, 1, 1.0, 8.0),
    (2, 2, 3, 3, 2.5, 0.0),
]
"""Errors of three worlds, summed over the days: draw, slot, origin, dest, happened, usual."""


def drawn():
    """The same with steps, and with the errors of three worlds, of which sums have an interval."""
    columns = zip(columns_of(("happened", "usual")).items(), zip(*ERRORS, strict=True), strict=True)
    table = pd.DataFrame({name: np.array(of, dtype=kind) for (name, kind), of in columns})
    return replace(both(), steps=STEPS, ensemble=Ensemble(3, 10, table))


DAYS = ("2024-05-01", "2024-05-02", "2024-05-04")
BY_DAY = [
    (0, 0, 0, 1, 12.0),
    (0, 0, 5, 2, 4.0),
    (0, 2, 4, 0, 6.0),
    (1, 0, 0, 1, 4.0),
    (1, 2, 4, 0, 8.0),
    (1, 2, 3, 3, 32.0),
    (2, 0, 0, OUT, 2.5),
]
"""People of each day: day, slot, origin, dest, sum over its steps."""
DAY_STEPS = ((2, 0, 1), (1, 0, 1), (1, 0, 0))


DAY_ERRORS = [
    (0, 0, 0, 0, 1, 1.0),
    (0, 1, 0, 0, 1, 3.0),
    (0, 1, 2, 4, 0, -5.0),
    (1, 0, 0, 0, 1, -6.0),
    (1, 0, 0, 5, 2, 4.0),
    (2, 2, 0, 0, OUT, 1.0),
    (2, 1, 2, 3, 3, 2.5),
]
"""Errors of what happened by day in three worlds: draw, day, slot, origin, dest, people."""


def by_day(*, sure=True, sums=True):
    """The same with what happened on each of three days, of the last one only in the morning.

    Ends of intervals lie a person below and two above the root of any flow of one day, half of that
    of three days, and as far again over the whole day. Without ``sums`` it is as saved before
    errors were kept by day.
    """
    columns = zip(days.COLUMNS.items(), zip(*BY_DAY, strict=True), strict=True)
    table = pd.DataFrame({name: np.array(of, dtype=kind) for (name, kind), of in columns})
    ends = np.tile([-1.0, 2.0], (2, 2, 2, len(SIZES) + 1, 1))
    ends[:, :, 1] /= 2
    ends[1] *= 2
    spread = days.Spread(np.array([1, 3]), ends) if sure else None
    errors = None
    if sure and sums:
        draw, day, slot, *rest = zip(*DAY_ERRORS, strict=True)
        told = zip(
            columns_of(("happened",), KEYS_BY_DAY).items(), (draw, slot, *rest[:2], day, rest[2]),
            strict=True,
        )  # fmt: skip
        missed = pd.DataFrame({name: np.array(of, dtype=kind) for (name, kind), of in told})
        errors = Ensemble(3, 10, missed)
    kept = days.DayFlows(DAYS, np.array(DAY_STEPS), 10, table, spread, errors)
    whole = drawn()
    steps = tuple(np.sum(DAY_STEPS, axis=0).tolist())
    return replace(whole, steps=steps, happened=replace(whole.happened, by_day=kept))


def placeless():
    """The same, of cells that have names only."""
    return replace(study(), grid=None)


def unsure():
    """The same without intervals, since no worlds were simulated."""
    whole = study()
    nothing = {"low": np.nan, "high": np.nan, "resolved": True}
    return replace(
        whole,
        flows=whole.flows.assign(**nothing),
        day_flows=whole.day_flows.assign(**nothing),
        settings=replace(whole.settings, replicates=0),
    )


def flows_of(moment):
    """What was written for a moment."""
    return DAY if moment == WHOLE_DAY else FLOWS[moment]
