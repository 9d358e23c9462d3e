"""Types of days of a study of counts: which days are of each, and which were told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from agg_core.counts.choosing import Trial, type_gains
from agg_core.counts.day_types import TypedDays, joined_sentences
from agg_core.counts.pairs import DAY_TYPES
from agg_core.counts.rows import Strength

__all__ = ["DayType", "DayTypes", "apart_words"]


def apart_words(apart: Sequence[str]) -> str:
    """Which types of days have times of day of their own, to go on with; nothing if none has."""
    names = list(apart)
    if names == [DAY_TYPES[1]]:
        return "weekdays and weekends apart"
    if not names:
        return ""
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"days apart from others: {listed}"


@dataclass(frozen=True)
class DayType:
    """A type of days.

    ``days`` are local dates, YYYY-MM-DD; ``apart`` is whether times of day differ on them from
    those of other days. ``gain`` is by how much the mean score on counts kept aside is larger with
    the type apart, ``gain_error`` a standard error of that; both None where it was not tried.
    """

    name: str
    days: tuple[str, ...]
    apart: bool = False
    gain: float | None = None
    gain_error: float | None = None

    @property
    def words(self) -> str:
        """How many days it has, whether it was told apart, and by how much the score gained."""
        n = len(self.days)
        told = f"{self.name} {n:,} {'day' if n == 1 else 'days'}"
        if self.gain is None or self.gain_error is None:
            return told if self.name == DAY_TYPES[0] else f"{told}, not tried apart"
        taken = "told apart" if self.apart else "not told apart"
        return f"{told}, {taken}: score {self.gain:+.3g}, standard error {self.gain_error:.2g}"


@dataclass(frozen=True)
class DayTypes:
    """Types of the days of a study.

    ``types`` are weekdays and weekends, holidays and labels that enough days have; ``joined`` are
    names that too few days have, and how many.
    """

    types: tuple[DayType, ...]
    joined: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(
        cls, found: TypedDays, trials: Sequence[Trial], learner: str, strength: Strength
    ) -> DayTypes:
        """Those of days, with what trials of the learner that was taken tell of them."""
        gains = type_gains(trials, learner)
        types = (
            DayType(name, days, kind in strength.apart, *gains.get(kind, (None, None)))
            for kind, (name, days) in enumerate(zip(found.names, found.dates, strict=True))
        )
        return cls(tuple(types), found.joined)

    @property
    def are_named(self) -> bool:
        """Whether somebody named days besides weekends."""
        return len(self.types) > len(DAY_TYPES) or bool(self.joined)

    @property
    def joined_sentences(self) -> tuple[str, ...]:
        """What became of names that too few days have."""
        return joined_sentences(self.joined)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Types in words, and what became of names of too few days; none where nobody named any."""
        if not self.are_named:
            return ()
        listed = "; ".join(each.words for each in self.types)
        return (f"Types of days: {listed}.", *self.joined_sentences)

    def told(self) -> list[dict[str, Any]]:
        """Each type for a summary, in plain JSON types: with the number of its days."""
        return [
            {
                "name": each.name, "n_days": len(each.days), "apart": each.apart,
                "gain": each.gain, "gain_error": each.gain_error,
            }
            for each in self.types
        ]  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Back from JSON."""
        types = tuple(DayType(**{**each, "days": tuple(each["days"])}) for each in values["types"])
        return cls(types, tuple((str(name), int(n)) for name, n in values["joined"]))
