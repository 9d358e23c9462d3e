"""A result whose flows and counts were written by hand, on the 3 x 3 grid of `tiny`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache

import numpy as np

from agg_core.study.people import StudyResult
from agg_core.study.settings import WindowSettings
from tests.agg_core import tiny

MORNING, NIGHT = "08:00", "23:30"
OUT = tiny.OUTSIDE

FLOWS = {
    (MORNING, "estimate"): {
        (0, 1): 2.5, (1, 0): 0.5, (0, 0): 4.0, (0, OUT): 1.5, (OUT, 1): 0.25,
    },
    (MORNING, "single"): {(0, 1): 2.0, (3, 4): 1.0, (0, 0): 5.0},
    (MORNING, "counted"): {(0, 1): 2.0, (8, 7): 3.0},
    (NIGHT, "estimate"): {(4, 0): 7.0, (3, 3): 12.0},
    (NIGHT, "single"): {(4, 0): 6.0},
    (NIGHT, "counted"): {(4, 0): 6.0},
}  # fmt: skip

OBSERVED = {
    MORNING: np.arange(30.0).reshape(3, 10),
    NIGHT: np.arange(30.0).reshape(3, 10) + 100,
}


@dataclass(frozen=True)
class Written(StudyResult):
    """A study whose mean flows are those written down, whatever its chains say."""

    written: Mapping = field(default_factory=dict)

    def matrix(self, time, source, step=None):
        if step is not None:
            return super().matrix(time, source, step)
        counts = np.zeros((self.n_states, self.n_states))
        for (origin, dest), count in self.written.get((time, source), {}).items():
            counts[origin, dest] = count
        return counts


@cache
def result():
    """Two times of day, an outside, three steps of an hour; the fits are those of a real study."""
    chosen = tiny.settings(window=WindowSettings(60, 3, ("05:00", "08:00")))
    _, learned = tiny.run(tiny.people(outside=True), chosen)
    by_time = tuple(
        replace(a, time=name, observed=OBSERVED[name])
        for a, name in zip(learned.by_time, (MORNING, NIGHT), strict=True)
    )
    assert learned.n_states == 10
    values = {f.name: getattr(learned, f.name) for f in fields(StudyResult)}
    return Written(**values | {"by_time": by_time}, written=FLOWS)


class OfMeans(Written):
    """The same without steps, which are those of its chains."""

    n_steps = 0


@cache
def of_means():
    """The same of which the flows of single steps, that were not written, are not told."""
    whole = result()
    return OfMeans(**{f.name: getattr(whole, f.name) for f in fields(StudyResult)}, written=FLOWS)


@cache
def nobody_moves():
    """The same people, of whom all stay."""
    stays = {
        key: {(a, b): n for (a, b), n in flows.items() if a == b} for key, flows in FLOWS.items()
    }
    return replace(result(), written=stays)


@cache
def of_positions():
    """The same without counts of cells."""
    whole = result()
    return replace(whole, by_time=tuple(replace(a, observed=None) for a in whole.by_time))


@cache
def whole_day():
    """A real study without times and without an outside."""
    return tiny.run(tiny.people(), tiny.settings(iterations=1))[1]
