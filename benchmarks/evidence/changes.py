"""How often changes are called that are none, and how often a bridge that was closed is found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely

from agg_core.evidence.changes import Changes, of_runs, what_changed
from agg_core.evidence.lines import Screenline
from agg_core.made.counts import simulate_city
from agg_core.space.settings import GridSettings
from agg_core.study.people import StudyResult, study_steps
from agg_core.study.settings import LearnSettings, StudySettings, WindowSettings
from benchmarks.group_sizes.tables import Row
from benchmarks.group_sizes.untold import hourly_fixes, walked

__all__ = ["ChangeSettings", "measure"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

SIDE, FIRST_HOUR = 8, 7
CITY = GridSettings(139.60, 35.60, 139.70, 35.68, SIDE, SIDE)
NOISE = 0.05


@dataclass(frozen=True)
class ChangeSettings:
    """Mornings of a simulated city, whose people are observed in groups.

    ``pairs`` of ordinary mornings are compared, and as many as ``planted`` with one on which a
    bridge is closed: ``closed`` of those who would cross the middle of the city stay where they
    are.
    """

    pairs: int = 50
    planted: int = 10
    closed: float = 0.2
    people: int = 6_000
    group_size: int = 20
    hours: int = 3
    replicates: int = 4
    iterations: int = 30


def measure(settings: ChangeSettings) -> Iterator[Row]:
    """A row for each pair: what was called changed among all moves, the bridge, ends and flows."""
    for kind, n in (("ordinary", settings.pairs), ("bridge closed", settings.planted)):
        for pair in range(n):
            rng = np.random.default_rng([pair, kind == "ordinary"])
            before = _learned(settings, rng, closed=0.0)
            after = _learned(settings, rng, closed=0.0 if kind == "ordinary" else settings.closed)
            found = what_changed(of_runs(before, after, ("before", "after")), lines=[_bridge()])
            yield {"kind": kind, "pair": pair, **_called(found)}


def _bridge() -> Screenline:
    """A line through the middle of the city, from south to north."""
    west, east = CITY.west, CITY.east
    middle = (west + east) / 2
    return Screenline("bridge", shapely.LineString([(middle, 30), (middle, 40)]))


def _called(found: Changes) -> Row:
    """How much was called changed, and the smallest chance of the bridge's two directions."""
    grew = found.volumes["grew"].to_numpy()
    total = found.total.iloc[0]
    return {
        "total": bool(total["changed"]), "ratio": float(total["after"] / total["before"]),
        "bridge_found": bool(found.volumes["changed"].any()),
        "p_bridge": float(2 * np.minimum(grew, 1 - grew).min()),
        "any_flow": found.n_changed > 0,
        "trip_ends": int(found.trip_ends["changed"].sum()), "flows": found.n_changed,
        "asked": found.n_asked,
    }  # fmt: skip


def _learned(settings: ChangeSettings, rng: np.random.Generator, *, closed: float) -> StudyResult:
    """What is learned of one morning."""
    cells = _morning(settings, rng, closed)
    places = CITY.make().centroids[cells.ravel()]
    learn = LearnSettings(
        group_size=settings.group_size, misclassify=NOISE, noise="given", assumed=NOISE,
        iterations=settings.iterations, replicates=settings.replicates,
        seed=int(rng.integers(2**31)),
    )  # fmt: skip
    window = WindowSettings(60, settings.hours)
    *_, result = study_steps(hourly_fixes(cells, places), StudySettings(CITY, window, learn))
    assert isinstance(result, StudyResult)
    return result


def _morning(settings: ChangeSettings, rng: np.random.Generator, closed: float) -> IntArray:
    """The cell of each person at each hour, (n, hours)."""
    made = simulate_city(SIDE, SIDE, days=1, people=settings.people, random_state=0)
    chances, n = made.transition, SIDE**2
    side = np.arange(n) % SIDE < SIDE // 2
    crosses = side[:, None] != side[None]
    weights = made.counts[FIRST_HOUR] / made.counts[FIRST_HOUR].sum()
    first = rng.choice(n, settings.people, p=weights)
    each = []
    for hour in range(FIRST_HOUR, FIRST_HOUR + settings.hours - 1):
        going = chances[hour] * np.where(crosses, 1 - closed, 1.0)
        going[np.arange(n), np.arange(n)] += 1 - going.sum(axis=1)
        each.append(going)
    return walked(first, each, rng)
