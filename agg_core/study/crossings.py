"""What a study of counts makes of gates: which counts were used, and what they contradict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.relay import last_of
from agg_core.base.report import printable
from agg_core.counts.choosing import learn_flows
from agg_core.counts.contradictions import Contradiction, believed, foretold_passing
from agg_core.counts.crossings import CrossingCounts
from agg_core.counts.erring import ErringPairs
from agg_core.counts.measuring import Measured
from agg_core.counts.pairs import CountPairs
from agg_core.counts.rows import Strength
from agg_core.counts.state import FlowState
from agg_core.tables.crossings import CrossingTable

__all__ = [
    "Gate",
    "GatesBeside",
    "check_beside",
    "check_gates",
    "contradiction_words",
    "with_gates",
]

FloatArray = npt.NDArray[np.float64]

MOST_NAMED = 3
"""Contradictions that a sentence names."""

LONGEST_NAME = 120


@dataclass(frozen=True)
class Gate:
    """A gate that was learned from.

    ``n_used`` of its counts were, whose relative ``error`` was given or learned; ``bias`` is an
    error that they share, as large as what they contradict, 0 where they do not.
    """

    gate: str
    direction: str
    n_used: int
    error: float
    bias: float


@dataclass(frozen=True)
class GatesBeside:
    """What gates added to a study: each of them, rows set aside by cause, and contradictions."""

    gates: tuple[Gate, ...]
    set_aside: Mapping[str, int]
    contradictions: tuple[Contradiction, ...]
    error_learned: bool

    @property
    def n_used(self) -> int:
        """Counts that were used."""
        return sum(gate.n_used for gate in self.gates)

    @property
    def words(self) -> str:
        """How many gates and counts were learned from, and what they contradict, in words."""
        n = len(self.gates)
        said = (
            f"{self.n_used:,} counts of {n:,} {'gate' if n == 1 else 'gates'} were learned from, "
            "too."
        )
        found = self.contradictions
        if not found:
            return said
        named = "; ".join(map(contradiction_words, found[:MOST_NAMED]))
        more = f"; and {len(found) - MOST_NAMED:,} more" if len(found) > MOST_NAMED else ""
        return (
            f"{said} They contradict the counts, and what contradicts was hardly believed: "
            f"{named}{more}."
        )

    def told(self) -> dict[str, Any]:
        """In plain JSON types, for a summary."""
        return {
            "n_gates": len(self.gates),
            "n_used": self.n_used,
            **self.to_dict(),
        }

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "gates": [asdict(gate) for gate in self.gates],
            "set_aside": dict(self.set_aside),
            "contradictions": [asdict(found) for found in self.contradictions],
            "error_learned": self.error_learned,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Back from JSON."""
        return cls(
            tuple(Gate(**gate) for gate in values["gates"]),
            dict(values["set_aside"]),
            tuple(Contradiction(**found) for found in values["contradictions"]),
            bool(values["error_learned"]),
        )


def contradiction_words(found: Contradiction) -> str:
    """One of them: where, when, how many were counted, and how many are to be expected."""
    name = printable(f"{found.gate} {found.direction}", LONGEST_NAME)
    return (
        f"{name}, {found.time}: {found.counted:,.0f} per step instead of {found.expected:,.0f} "
        f"(z {found.z:+.1f})"
    )


def check_gates(gates: CrossingTable | None, n_cells: int, *, nearby: bool) -> None:
    """Refuse gates that cannot be honoured.

    Raises
    ------
    InputError
        If they are of other cells, counted nothing, or moves are within a reach.
    """
    if gates is None:
        return
    if nearby:
        raise InputError(
            "Gates are learned from with moves between all cells alone; leave out the farthest "
            "move in a step, or the gates.",
            code="gates-unsuited",
        )
    if gates.n_cells != n_cells:
        raise InputError(
            f"The gates stand between {gates.n_cells:,} cells, and the counts have {n_cells:,}; "
            "read them anew for these counts.",
            code="gates-of-other-cells",
        )
    if not gates.n_used:
        raise InputError(
            "No count of a gate lies at a time of the counts; give gates that counted then.",
            code="no-gate-counts",
        )


def check_beside(gates: CrossingTable | None, measured: Measured) -> None:
    """Refuse gates beside counts that they cannot be learned from with.

    Raises
    ------
    InputError
        If counts err, or each one who was counted stands for several.
    """
    if gates is None:
        return
    pairs, expansion = measured.pairs, measured.expansion
    if isinstance(pairs, ErringPairs):
        raise InputError(
            "Gates are learned from beside counts that are exact; take these for that by an error "
            "of 0, or leave the gates out.",
            code="gates-unsuited",
        )
    if expansion != 1:
        raise InputError(
            f"Gates count everybody, and each one of the counts stands for {expansion:.3g} people; "
            "say that it is one, or leave the gates out.",
            code="gates-unsuited",
        )


def with_gates(
    pairs: CountPairs,
    shape: FloatArray,
    learner: str,
    strength: Strength,
    gates: CrossingTable | None,
    *,
    start: FlowState | None = None,
    n_slots: int,
    random_state: np.random.Generator,
) -> tuple[CountPairs, GatesBeside | None]:
    """Pairs with what gates counted within them, and how far that is believed; as they are without.

    What counts alone foretell of the gates is learned first (see `foretold_passing`). Of pairs
    whose types of days are apart times of day are ``n_slots``.

    Raises
    ------
    InputError
        If no gate counted within a pair.
    """
    if gates is None:
        return pairs, None
    assert pairs.moment is not None
    counted = gates.counts[pairs.moment]
    used = np.flatnonzero(np.isfinite(counted).any(axis=0))
    if not len(used):
        raise InputError(
            "No gate counted between two moments whose counts are known; give gates that counted "
            "then.",
            code="no-gate-counts",
        )
    moves = gates.between(outside=pairs.has_outside)[used]
    counts = CrossingCounts.of(
        moves, counted[:, used], pairs.slot % n_slots, np.zeros(len(used)), n_slots
    )
    steps = learn_flows(
        pairs, shape, learner, strength, start=start, random_state=random_state.spawn(1)[0]
    )
    told = foretold_passing(
        pairs, shape, last_of(steps), learner, strength, moves, start=start,
        random_state=random_state.spawn(1)[0],
    )  # fmt: skip
    names = [(gates.gates[g], gates.directions[g]) for g in used]
    found, contradictions = believed(counts, told, pairs, names, error=gates.error)
    each = tuple(
        Gate(*name, int(n), float(s), float(b))
        for name, n, s, b in zip(
            names, found.seen.sum(axis=0), found.relative,
            np.maximum(found.bias, found.bias_then.max(axis=0)), strict=True,
        )
    )  # fmt: skip
    beside = GatesBeside(each, gates.set_aside, contradictions, gates.error is None)
    return replace(pairs, crossings=found), beside
