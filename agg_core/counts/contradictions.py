"""What gates contradict, before anything is learned from them, and how far each is to be believed.

Counts alone foretell who passes a gate, roughly: where a gate says otherwise by more than that
roughness, it counts something else, or the wrong way round, or is broken. Two things are surer. On
a line that divides all cells in two, those who pass one way less those who pass the other way are
the change of the people on one side. And no more can pass than there are people to come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import ndtri

from agg_core.base.relay import last_of
from agg_core.counts.choosing import learn_flows
from agg_core.counts.crossings import CrossingCounts, each_passing
from agg_core.counts.filling import sums_by
from agg_core.counts.pairs import CountPairs
from agg_core.counts.rows import Strength
from agg_core.counts.state import FlowState
from agg_core.counts.worlds import MOST_FACTOR, simulated_world, with_movement

__all__ = ["ALL_DAY", "Contradiction", "Foretold", "believed", "foretold_passing"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

ALL_DAY = "all day"
"""The time of what a gate counted at all times of day together."""

WORLDS = 2
"""Simulated worlds that tell how roughly counts foretell who passes gates."""

LEAST_ROUGH = 0.1
"""Part of those who pass a gate by which counts alone are taken to miss them at least."""

ENOUGH = 4
"""Gates, or counts at times of day, from which on their own differences tell how roughly they are
foretold."""

RIGHT, RIGHT_THEN = 0.5, 0.9
"""Share of gates, and of their times of day, that are taken to be right at least: what these
differ by is no contradiction."""

MOST_ROUGH, HALVINGS = 10.0, 40

BOUND, BOUND_THEN = 3.0, 5.0
"""Standard deviations beyond which a gate contradicts, of few that are looked at; and at one time
of day, where transitions miss by much more now and then."""

CHANCE = 0.05
"""Chance that any of many is beyond the bound, where none contradicts."""

MOST_ERROR = 2.0
FEWEST_DEGREES = 8
GUESS = 0.1
"""Relative error of a gate's counts at most; days that tell it at least, and what is taken for it
where there are fewer."""


@dataclass(frozen=True)
class Contradiction:
    """A gate, a direction and a time at which counts say something else than other counts.

    ``code`` is "change" where it is the change of the people on one side of a line, "people" where
    fewer were there to pass, and "flows" where counts alone foretell otherwise. ``counted`` and
    ``expected`` are people per step, ``z`` standard deviations between them.
    """

    code: str
    gate: str
    direction: str
    time: str
    counted: float
    expected: float
    z: float


@dataclass(frozen=True)
class Foretold:
    """Who passes gates within each pair as counts alone foretell it.

    ``mean`` and ``variance`` (P, G) are those given both counts of a pair and the transitions;
    ``rough`` and ``rough_then`` are how far the transitions miss who passes a gate, as a share of
    them, in all and at one time of day.
    """

    mean: FloatArray
    variance: FloatArray
    rough: float
    rough_then: float


def foretold_passing(
    pairs: CountPairs,
    shape: FloatArray,
    state: FlowState,
    learner: str,
    strength: Strength,
    moves: sparse.csr_array,
    *,
    start: FlowState | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Foretold:
    """What counts alone, whose transitions are those of ``state``, foretell of gates.

    ``moves`` (G, d * d) pass each. In worlds that are simulated from the transitions the same
    learner finds others: by how far those who pass there are missed is how roughly they are
    foretold here.
    """
    plain = replace(pairs, crossings=None)
    chances = np.random.default_rng(random_state).spawn(WORLDS)
    found, logs = [], []
    for rng in chances:
        moved, world = simulated_world(plain, plain.before, state.transmats, rng)
        steps = learn_flows(world, shape, learner, strength, start=start, random_state=rng)
        learned = last_of(steps).transmats
        stays = np.diagonal(learned, axis1=1, axis2=2)[world.which(learned)]
        movers = moved.sum() - np.trace(moved, axis1=1, axis2=2).sum()
        went = (world.before * (1 - stays)).sum()
        logs.append(np.log(max(float(movers), 1.0) / max(float(went), 1.0)))
        found.append((moved, world, learned))
    limit = np.log(MOST_FACTOR)
    factor = float(np.exp(np.clip(np.mean(logs), -limit, limit)))
    far = [_missed(*each, factor, moves) for each in found]
    mean, variance = each_passing(plain, with_movement(state.transmats, factor), moves)
    whole, then = (np.stack(parts) for parts in zip(*far, strict=True))
    return Foretold(mean, variance, _rough(whole), _rough(then))


def _missed(
    moved: FloatArray,
    world: CountPairs,
    learned: FloatArray,
    factor: float,
    moves: sparse.csr_array,
) -> tuple[FloatArray, FloatArray]:
    """Those who pass gates in a world, as foretold there, and their variance.

    Each (3, G) of all times of day and (3, H, G) of each.
    """
    told, variance = each_passing(world, with_movement(learned, factor), moves)
    n = len(world.slots)
    true = moved.reshape(n, -1) @ moves.T
    each = np.stack([true, sums_by(world.slot, n, told), sums_by(world.slot, n, variance)])
    return each.sum(axis=1), each


def _rough(parts: FloatArray) -> float:
    """How far those who pass are missed, as a share of them, beyond chance in who moves.

    ``parts`` (W, 3, ...) are true, foretold, and their variance.
    """
    true, told, variance = np.moveaxis(parts, 1, 0)
    beyond = float(((true - told) ** 2 - variance).sum())
    return float(np.sqrt(max(beyond / max(float((true * told).sum()), 1e-300), 0.0)))


def believed(
    gates: CrossingCounts,
    told: Foretold,
    pairs: CountPairs,
    names: Sequence[tuple[str, str]],
    *,
    error: float | None = None,
) -> tuple[CrossingCounts, tuple[Contradiction, ...]]:
    """Gates with their errors, and what they contradict.

    ``names`` (G,) are a gate and a direction each. The relative ``error`` of counts is that of how
    they scatter from day to day about what is foretold, unless it is given. What contradicts gets
    an error besides that its counts share, as large as the contradiction, so that it pulls little.
    """
    n_slots = len(gates.bias_then)
    if error is None:
        relative = np.array([_scatter(gates, told, g) for g in range(gates.n_gates)])
    else:
        relative = np.full(gates.n_gates, error)
    gates = replace(gates, relative=relative)
    told = _levelled(told, _Sums.of(gates, told).over_day)
    there = _Sums.of(gates, told)
    whole = there.over_day
    seen, counted = whole.n > 0, there.n > 0
    rough = whole.rough_at_least(max(told.rough, LEAST_ROUGH), RIGHT)
    rough_then = there.rough_at_least(max(told.rough_then, rough), RIGHT_THEN)
    z_whole, z_then = whole.z(rough), there.z(rough_then)
    wrong = np.abs(z_whole) > _bound(int(seen.sum()))
    at_times = counted & (np.abs(z_then) > BOUND_THEN)
    found: list[Contradiction] = []
    for g in np.flatnonzero(wrong).tolist():
        found.append(whole.named("flows", names[g], ALL_DAY, g, z_whole[g]))
    labels = [pairs.slots[h] for h in range(n_slots)]
    for h, g in np.argwhere(at_times).tolist():
        found.append(there.named("flows", names[g], labels[h], (h, g), z_then[h, g]))
    surely, more = _surely_wrong(gates, pairs, names, there)
    found += surely
    off = np.abs(whole.counted - whole.expected) / np.maximum(whole.counted, 1.0)
    off_then = np.abs(there.counted - there.expected) / np.maximum(there.counted, 1.0)
    at_times |= more
    # What a whole gate is wrong by is not to be counted twice.
    bias_then = np.where(at_times & ~wrong, np.maximum(off_then, rough_then), 0.0)
    bias = np.where(wrong, off, 0.0)
    found.sort(key=lambda each: -abs(each.z))
    return replace(gates, bias=bias, bias_then=bias_then, rough=rough_then), tuple(found)


def _levelled(told: Foretold, whole: _Sums) -> Foretold:
    """What is foretold, times what most gates say: how much people move at all is learned roughly.

    Gates are then held against each other, where there are enough.
    """
    known = (whole.n > 0) & (whole.expected > 0)
    if known.sum() < ENOUGH:
        return told
    level = float(np.median(whole.counted[known] / whole.expected[known]))
    level = float(np.clip(level, 1 / MOST_FACTOR, MOST_FACTOR))
    return replace(told, mean=level * told.mean, variance=level * told.variance)


def _bound(n: int) -> float:
    """Standard deviations that one of ``n`` is beyond by a small chance, `BOUND` at least."""
    return max(BOUND, float(-ndtri(CHANCE / 2 / max(n, 1))))


@dataclass(frozen=True)
class _Sums:
    """Sums (..., G) of what was counted and is expected, over ``n`` counts, and the variance."""

    n: FloatArray
    counted: FloatArray
    expected: FloatArray
    variance: FloatArray
    error: FloatArray

    @classmethod
    def of(cls, gates: CrossingCounts, told: Foretold) -> _Sums:
        """Those of each time of day."""
        parts = (np.ones(told.mean.shape), gates.counts, told.mean, told.variance, gates.variance)
        return cls(*(gates.by_slot(part) for part in parts))

    @property
    def over_day(self) -> _Sums:
        """Those of all times of day together."""
        return _Sums(*(part.sum(axis=0) for part in vars(self).values()))

    def z(self, rough: float) -> FloatArray:
        """How far apart both are, in standard deviations, where they differ by a share anyway.

        That share is of the mean of both, so that half and double are as far.
        """
        middle = (self.counted + self.expected) / 2
        spread = self.variance + self.error + (rough * middle) ** 2
        return np.asarray((self.counted - self.expected) / np.sqrt(np.maximum(spread, 1.0)))

    def rough_at_least(self, least: float, right: float) -> float:
        """How roughly a share of all, which are ``right``, is foretold as they differ themselves.

        It is the share by which both differ with which that part of them is as near as it would be
        by chance.
        """
        known = self.n > 0
        if known.sum() < ENOUGH:
            return least
        chance = float(ndtri((1 + right) / 2))

        def is_enough(rough: float) -> bool:
            return float(np.quantile(np.abs(self.z(rough)[known]), right)) <= chance

        low, high = least, MOST_ROUGH
        if is_enough(low):
            return low
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return high

    def named(
        self, code: str, name: tuple[str, str], time: str, at: tuple[int, int] | int, z: float
    ) -> Contradiction:
        """One of them as a contradiction, per step."""
        n = max(float(self.n[at]), 1.0)
        return Contradiction(
            code, *name, time, float(self.counted[at]) / n, float(self.expected[at]) / n, float(z)
        )


def _scatter(gates: CrossingCounts, told: Foretold, g: int) -> float:
    """The relative error of a gate's counts: how they scatter about what is foretold.

    At each time of day that is as large as counted, so that only what differs from day to day is
    scatter, beyond chance in who moves and who is counted.
    """
    square = degrees = weight = 0.0
    for slot in np.unique(gates.slot):
        rows = np.flatnonzero((gates.slot == slot) & gates.seen[:, g])
        c, e = gates.counts[rows, g], told.mean[rows, g]
        if len(rows) < 2 or e.sum() <= 0:
            continue
        ratio = c.sum() / e.sum()
        level = gates.level[rows, g]
        left = 1 - 1 / len(rows)
        chance = ratio**2 * told.variance[rows, g] + level
        square += float(((c - ratio * e) ** 2).sum() - left * chance.sum())
        weight += left * float((level**2).sum())
        degrees += len(rows) - 1
    if degrees < FEWEST_DEGREES:
        return GUESS
    return float(min(np.sqrt(max(square / weight, 0.0)), MOST_ERROR))


def _surely_wrong(
    gates: CrossingCounts, pairs: CountPairs, names: Sequence[tuple[str, str]], there: _Sums
) -> tuple[list[Contradiction], BoolArray]:
    """Gates that cannot be right: by the people who are there, or by the change on one side.

    And at which times of day (H, G).
    """
    found: list[Contradiction] = []
    wrong = np.zeros(there.n.shape, dtype=bool)
    tables = [gates.moves[[g]].toarray().reshape(gates.n_states, -1) for g in range(gates.n_gates)]
    bound = _bound(int((there.n > 0).sum()))

    def check(
        code: str, name: tuple[str, str], counted: FloatArray, most: FloatArray, error: FloatArray,
        rows: BoolArray, of: Sequence[int],
    ) -> None:  # fmt: skip
        """``counted`` (P,) against what it may be, by time of day, of the pairs ``rows``."""
        n = len(wrong)
        sums = [
            np.bincount(gates.slot[rows], part[rows], n)
            for part in (counted, most, error, np.ones(len(rows)))
        ]
        for h in np.flatnonzero(sums[3]):
            z = (sums[0][h] - sums[1][h]) / np.sqrt(max(sums[2][h], 1.0))
            if z > bound or (code == "change" and z < -bound):
                wrong[h, list(of)] = True
                found.append(
                    Contradiction(
                        code, *name, pairs.slots[h], float(sums[0][h] / sums[3][h]),
                        float(sums[1][h] / sums[3][h]), float(z),
                    )
                )  # fmt: skip

    for g, table in enumerate(tables):
        times = max(float(table.max()), 1.0)
        there_before = pairs.before[:, table.any(axis=1)].sum(axis=1)
        there_after = pairs.after[:, table.any(axis=0)].sum(axis=1)
        most = times * np.minimum(there_before, there_after)
        check(
            "people",
            names[g],
            gates.counts[:, g],
            most,
            gates.variance[:, g],
            gates.seen[:, g],
            [g],
        )
    for g, h in _ways(names):
        inside = _side(tables[g] - tables[h])
        if inside is None:
            continue
        change = (pairs.after - pairs.before) @ inside
        rows = gates.seen[:, g] & gates.seen[:, h]
        net = gates.counts[:, g] - gates.counts[:, h]
        error = gates.variance[:, g] + gates.variance[:, h]
        both = " - ".join((names[g][1], names[h][1]))
        check("change", (names[g][0], both), net, change, error, rows, [g, h])
    return found, wrong


def _ways(names: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    """Numbers of the two directions of gates that have both."""
    by_gate: dict[str, list[int]] = {}
    for number, (gate, _) in enumerate(names):
        by_gate.setdefault(gate, []).append(number)
    return [(two[0], two[1]) for two in by_gate.values() if len(two) == 2]


def _side(net: FloatArray) -> FloatArray | None:
    """Which states (d,) lie on the side that a line leads to, if it divides all of them in two.

    ``net`` (d, d) is how often a move passes one way, less the other way.
    """
    inside = net[0] - net[0].min()
    divides = np.array_equal(inside[None, :] - inside[:, None], net)
    return inside if divides and net.any() else None
