"""Settings of a study, said once: forms, command line and checks are made from these fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self, TypeVar

from agg_core.base.clock import clock_label, clock_minutes
from agg_core.base.earlier import of_today
from agg_core.base.errors import InputError
from agg_core.base.options import Checked, option_field
from agg_core.counts.day_types import DaysNamed, check_labels
from agg_core.counts.public_holidays import check_place
from agg_core.learn.table import (
    AUTO,
    LEARNERS,
    LEAST_SQUARES,
    PRIOR,
    learner_named,
    listed_learners,
    present_name,
)
from agg_core.space.settings import AnyGridSettings, GridSettings, grid_from_dict, grid_to_dict

__all__ = [
    "KINDS",
    "CountLearnSettings",
    "GateLearnSettings",
    "LearnSettings",
    "StudySettings",
    "WindowSettings",
    "learn_settings",
    "parse_clock",
    "parse_minutes",
]

KINDS = {"cells": "symbols", "positions": "positions"}
"""What `agg_core.learn.table.Learner.observes` calls the observations of a study."""


@dataclass(frozen=True)
class WindowSettings(Checked):
    """How time is cut: steps, windows of T steps, and when they begin."""

    step_minutes: int = option_field(
        30, "Time step", "A person is in one cell per step: the last one seen.",
        unit="minutes", least=1, most=1440, step=5,
    )  # fmt: skip
    length: int = option_field(
        3, "Steps per window, T", "Length of the sequences that the model is learned from.",
        least=2, most=48, step=1,
    )  # fmt: skip
    times: tuple[str, ...] = option_field(
        (),
        "Times of day",
        "Local times at which windows of T steps begin; none cuts the whole day into such windows.",
    )
    max_gap_minutes: int | None = option_field(
        None, "Longest gap", "Fixes further apart start a new track. Left out: twice the step.",
        unit="minutes", least=1, most=10_080, step=5,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        # A time given twice is one time.
        object.__setattr__(self, "times", tuple(dict.fromkeys(self.times)))

    @property
    def step(self) -> str:
        """The step as pandas spells it."""
        return f"{self.step_minutes}min"

    @property
    def max_gap(self) -> str | None:
        """The longest gap as pandas spells it."""
        return None if self.max_gap_minutes is None else f"{self.max_gap_minutes}min"


def _replicates(default: int, *, step: int) -> Any:
    return option_field(
        default, "Simulated worlds",
        "Worlds simulated from what was learned, and learned from again: they give each flow an "
        "interval. 0: none.",
        least=0, most=200, step=step,
    )  # fmt: skip


OF_PEOPLE_BEYOND = (
    "people who went farther are left out and counted, and noise is learned from single people "
    "alone."
)
OF_COUNTS_BEYOND = (
    "counts are then taken for exact, and no worlds are simulated to tell how sure flows are."
)


def _reach(beyond: str) -> Any:
    return option_field(
        None, "Farthest move in a step",
        "How far apart the middles of two cells may be between which people move in one step. What "
        f"is farther is not looked at, so that thousands of cells take little memory; {beyond} "
        "Left out: everywhere.",
        unit="km", per=1000.0, least=1.0, most=25_000_000.0, step=500.0, empty="everywhere",
    )  # fmt: skip


@dataclass(frozen=True)
class LearnSettings(Checked):
    """Noise, aggregation and the learner."""

    group_size: int = option_field(
        20, "Group size, M", "People per group of whom only the counts are kept. 1 hides nothing.",
        unit="people", least=1, most=1_000_000, step=1,
    )  # fmt: skip
    observed: str = option_field(
        "cells", "Observations",
        "Cells: how many people of a group are in each cell. Positions: where the people of a "
        "group are, in metres with noise, but not who is where.",
        choices=("cells", "positions"),
        choice_labels=("Counts of people per cell", "Positions of people (Gaussian)"),
    )  # fmt: skip
    misclassify: float = option_field(
        0.05, "Chance of being counted next door",
        "How likely a fix is moved into a cell that touches its own before people are counted, "
        "from 0, never, to 1, always: noise that is added to what the file holds. Positions are "
        "not counted in cells.",
        least=0.0, most=1.0, step=0.01,
    )  # fmt: skip
    noise: str = option_field(
        "auto", "Noise that is allowed for",
        "How likely fixes are taken to lie in a neighbour cell, or by how many metres positions "
        "are taken to be off. The best for the data is learned from the fixes themselves, the "
        "noise of the file and that which is added together, in windows of 3 steps or more; what "
        "is given is held against it, of up to 500 cells.",
        choices=("auto", "given"),
        choice_labels=("Best for the data", "As given"),
    )  # fmt: skip
    assumed: float = option_field(
        0.05, "Chance that is allowed for",
        "How likely a fix is taken to lie in a cell that touches its own, whatever noise is added.",
        least=0.0, most=1.0, step=0.01,
    )  # fmt: skip
    sigma_m: float = option_field(
        0.0, "Position noise", "Standard deviation of Gaussian noise on each position.",
        unit="metres", least=0.0, most=100_000.0, step=50.0,
    )  # fmt: skip
    inference: str = option_field(
        AUTO,
        "Learner",
        "How flows are learned from counts. The best for the data is MCMC over individual "
        "assignments where cells hold few people, Gaussian pairs where they hold many. CFB is the "
        "paper's learner, "
        "which invents movement in groups. Single people are learned from exactly, by any.",
        choices=tuple(LEARNERS),
        choice_labels=tuple(row.label for row in LEARNERS.values()),
    )
    calibrate: int = option_field(
        0, "Simulated replicates",
        "Groups simulated in each iteration, as many times as this, to find and take away the "
        f"error of the learner itself. For {listed_learners(lambda row: row.calibrated)}; 0: none.",
        least=0, most=50, step=1,
    )  # fmt: skip
    strength: str = option_field(
        "auto", "Strength of the prior",
        "How much cells with few people lean on what all cells show together. The best for the "
        "data is found by predicting the counts of groups kept aside. "
        f"For {listed_learners(lambda row: row.pulled)}; the other learners are as published.",
        choices=("auto", "given"),
        choice_labels=("Best for the data", "As given"),
    )  # fmt: skip
    prior: float = option_field(
        PRIOR, "Weight of the prior",
        "People per cell who move as distance and attraction predict, with the share of stays, the "
        "fall with distance and the attraction of each cell that all cells together show; 0 for "
        "none.",
        unit="people", least=0.0, most=10_000.0, step=0.5,
    )  # fmt: skip
    start: str = option_field(
        "distance",
        "Start",
        "Where learning from groups begins: most people stay and the others go near, or the "
        "least squares fit of each group's next counts on its present ones, which needs many "
        "groups per cell.",
        choices=("distance", LEAST_SQUARES),
        choice_labels=("Distance decay", LEARNERS[LEAST_SQUARES].label),
    )
    iterations: int = option_field(
        60, "Iterations", "Most EM iterations; a fit that stands still ends earlier.",
        least=1, most=5_000, step=10,
    )  # fmt: skip
    replicates: int = _replicates(4, step=2)
    threshold: float = option_field(
        35.0, "Arrow threshold", "Flows above this are arrows, on the map and in the comparison.",
        unit="people per step", least=0.0, most=1e9, step=5.0,
    )  # fmt: skip
    seed: int = option_field(
        0, "Seed", "Draws the noise and the groups; the same seed gives the same figures.",
        least=0, most=2**31 - 1, step=1,
    )  # fmt: skip

    assumed_m: float = option_field(
        0.0, "Metres that are allowed for",
        "By how many metres a position is taken to be off in each direction, as a standard "
        "deviation, whatever noise is added. For positions only.",
        unit="metres", least=0.0, most=100_000.0, step=50.0,
    )  # fmt: skip
    reach_m: float | None = _reach(OF_PEOPLE_BEYOND)

    def __post_init__(self) -> None:
        if self.inference in LEARNERS.faults:
            fault = LEARNERS.faults[self.inference]
            raise InputError(str(fault), code=fault.code)
        super().__post_init__()
        learner = learner_named(self.inference)
        if KINDS[self.observed] not in learner.observes or (
            self.observed == "positions" and self.start != "distance"
        ):
            able = listed_learners(lambda row: KINDS[self.observed] in row.observes)
            start = " and from the distance decay start" if self.observed == "positions" else ""
            other = "cells" if self.observed == "positions" else "positions"
            raise InputError(
                f"{self.observed.capitalize()} can be learned from by {able}{start} only; choose "
                f"these, or observe {other}.",
                code="learner-unsuited",
            )
        learner.check_sizes(single=self.group_size == 1)
        if self.calibrate and not learner.calibrated:
            raise InputError(
                f"The learner {self.inference} cannot be calibrated on simulated replicates; take "
                f"0 of them, or choose {listed_learners(lambda row: row.calibrated)}.",
                "--calibrate 0",
                code="learner-not-calibrated",
            )
        if self.reach_m is not None:
            self._check_reach()

    def _check_reach(self) -> None:
        """Refuse what cannot be learned of moves within a reach alone."""
        if not learner_named(self.inference).near:
            able = listed_learners(lambda row: row.near)
            raise InputError(
                f"The learner {self.inference} looks at moves between all cells; choose {able}, or "
                "leave out the farthest move in a step.",
                code="learner-unsuited",
            )
        unsuited = {
            "positions are observed": self.observed == "positions",
            "learning begins with least squares": self.start == LEAST_SQUARES,
            "groups are simulated in each iteration": self.calibrate > 0,
            # A person who is counted next door may seem to go farther than anybody can.
            "people are counted next door and no chance of that is allowed for": (
                self.misclassify > 0 and self.noise == "given" and self.assumed == 0
            ),
        }
        for told, is_so in unsuited.items():
            if is_so:
                raise InputError(
                    f"The farthest move in a step cannot be given where {told}; change that, or "
                    "leave it out.",
                    code="reach-unsuited",
                )

    @property
    def unused(self) -> tuple[str, ...]:
        """Names of the settings that the chosen learner and observations have no use for."""
        cells = self.observed == "cells"
        used = {
            "misclassify": cells,
            "assumed": cells and self.noise == "given",
            "assumed_m": not cells and self.noise == "given",
            "calibrate": learner_named(self.inference).calibrated and self.reach_m is None,
            "strength": self.pulled,
            "prior": self.pulled and self.strength == "given",
        }
        return tuple(name for name, is_used in used.items() if not is_used)

    @property
    def pulled(self) -> bool:
        """Whether a prior pulls what is learned; of single people the best learner is exact."""
        pulled = learner_named(self.inference).pulled
        return pulled and (self.inference != AUTO or self.group_size > 1)

    @property
    def unused_by(self) -> str:
        """What has no use for those, at the beginning of a sentence."""
        strength = f", strength {self.strength}" if self.pulled else ""
        return (
            f"The learner {self.inference} from {self.observed} in groups of "
            f"{self.group_size}, noise {self.noise}{strength},"
        )


@dataclass(frozen=True)
class CountLearnSettings(Checked):
    """How flows are learned where there are only counts."""

    time: str = option_field(
        "auto", "Times of day",
        "Whether people move by the same chances all day, or by others at each time of day, which "
        "takes many people or many days to tell.",
        choices=("auto", "one", "by_time"),
        choice_labels=("Best for the data", "The same all day", "Each time of day its own"),
    )  # fmt: skip
    strength: str = option_field(
        "auto", "Strength of the prior",
        "How much flows lean on distance and attraction. The best for the data is found by "
        "predicting the counts of days kept aside; no prior at all is tried too.",
        choices=("auto", "given"),
        choice_labels=("Best for the data", "As given"),
    )  # fmt: skip
    prior: float = option_field(
        20.0, "Weight of the prior",
        "People per cell who move as distance and attraction predict; 0 for none.",
        unit="people", least=0.0, most=100_000.0, step=5.0,
    )  # fmt: skip
    count_error: float | None = option_field(
        None, "Error of the counts",
        "Standard deviation of what counts are wrong by, as a share of the count: 0.05 is 5 %, 0 "
        "takes them for exact. Left out: learned from the counts.",
        least=0.0, most=1.0, step=0.01,
    )  # fmt: skip
    expansion: float | None = option_field(
        None, "People per counted one",
        "How many people each one who was counted stands for, where counts are scaled up from a "
        "sample. Left out: learned from the counts.",
        least=1.0, most=100_000.0, step=1.0,
    )  # fmt: skip
    replicates: int = _replicates(12, step=4)
    threshold: float = option_field(
        5.0, "Arrow threshold", "Flows above this are arrows on the map.",
        unit="people per step", least=0.0, most=1e9, step=1.0,
    )  # fmt: skip
    seed: int = option_field(
        0, "Seed", "Draws who goes where; the same seed gives the same figures.",
        least=0, most=2**31 - 1, step=1,
    )  # fmt: skip

    reach_m: float | None = _reach(OF_COUNTS_BEYOND)
    holidays: str | None = option_field(
        None, "Holidays",
        "Public holidays of a country, or of a part of it, such as JP, DE-BW or US-NJ: days of a "
        "type of their own, if counts are foretold better so; where there are too few, days of "
        "weekends. Left out: days like others.",
    )  # fmt: skip
    day_labels: tuple[tuple[str, str], ...] = option_field(
        (), "Labels of days",
        "Dates on the local clock and a label each, such as strike or school holiday: days of one "
        "label are a type of their own, if counts are foretold better so.",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.holidays is not None:
            object.__setattr__(self, "holidays", check_place(self.holidays))
        object.__setattr__(self, "day_labels", check_labels(self.day_labels))
        if self.reach_m is not None and self.count_error:
            raise InputError(
                "Counts that err are learned from with moves between all cells alone; set their "
                "error to 0, or leave out the farthest move in a step.",
                code="reach-unsuited",
            )

    @property
    def worlds(self) -> int:
        """Worlds that are simulated: none of moves within a reach."""
        return self.replicates if self.reach_m is None else 0

    @property
    def days(self) -> DaysNamed:
        """The days that are named; none where times of day, and so their types, are not apart."""
        return DaysNamed() if self.time == "one" else DaysNamed(self.holidays, self.day_labels)

    @property
    def unused(self) -> tuple[str, ...]:
        """Names of the settings that the others leave without a use."""
        used = {
            "holidays": self.time != "one", "day_labels": self.time != "one",
            "prior": self.strength == "given", "replicates": self.replicates == self.worlds,
        }  # fmt: skip
        return tuple(name for name, is_used in used.items() if not is_used)

    @property
    def unused_by(self) -> str:
        """What has no use for those, at the beginning of a sentence."""
        if self.time == "one" and (self.holidays is not None or self.day_labels):
            return "Learning the same chances all day (time one)"
        if self.reach_m is None:
            return "A strength that is chosen by the data (strength auto, not given)"
        chosen = ", the strength chosen by the data," if self.strength == "auto" else ""
        return f"Learning moves within a reach{chosen}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Back from JSON, of an earlier version too, checked again."""
        # Instead of a trust in the counts their error is learned now.
        known = {name: value for name, value in values.items() if name != "trust"}
        labels = tuple((str(day), str(label)) for day, label in known.get("day_labels", ()))
        return cls(**known | {"day_labels": labels})


@dataclass(frozen=True)
class GateLearnSettings(Checked):
    """How flows are learned from entries and exits."""

    minutes_per_km: float | None = option_field(
        None, "Pace of trips",
        "Minutes per kilometre from gate to gate, beside eight for the way to the train and "
        "waiting. Left out: several paces are tried, and the best is taken.",
        unit="minutes per km", least=0.2, most=60.0, step=0.1,
    )  # fmt: skip
    spread: float = option_field(
        0.5, "Spread of pairs",
        "How far pairs of stations stray from what distance and lines make likely: the standard "
        "deviation of the logarithm. 0.5: two in three pairs have between 0.6 and 1.65 times as "
        "many people. Entries and exits tell little of it, so that intervals rest on it.",
        least=0.05, most=2.0, step=0.05,
    )  # fmt: skip
    hour_of: str = option_field(
        "entry", "Time of a flow", "Whether a trip counts at the time of its entry or of its exit.",
        choices=("entry", "exit"), choice_labels=("Entry", "Exit"),
    )  # fmt: skip
    draws: int = option_field(
        24, "Draws", "Patterns that may be as well, each scaled to the entries and exits of every "
        "day: they give flows and sums their intervals. 0: none.",
        least=0, most=200, step=8,
    )  # fmt: skip
    threshold: float = option_field(
        20.0, "Arrow threshold", "Flows above this are arrows on the map.",
        unit="people per step", least=0.0, most=1e9, step=5.0,
    )  # fmt: skip
    seed: int = option_field(
        0, "Seed", "Draws patterns; the same seed gives the same figures.",
        least=0, most=2**31 - 1, step=1,
    )  # fmt: skip
    holidays: str | None = option_field(
        None, "Holidays",
        "Public holidays of a country, or of a part of it, such as JP, DE-BW or US-NJ: on them "
        "other numbers are usual. Left out: days like others.",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.holidays is not None:
            object.__setattr__(self, "holidays", check_place(self.holidays))

    @property
    def unused(self) -> tuple[str, ...]:
        """Names of the settings that the others leave without a use: none."""
        return ()

    @property
    def unused_by(self) -> str:
        """What has no use for those."""
        return ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Back from JSON, checked again."""
        return cls(**values)


AnyLearnSettings = TypeVar("AnyLearnSettings", LearnSettings, CountLearnSettings, GateLearnSettings)


def learn_settings(kind: type[AnyLearnSettings], stated: Mapping[str, Any]) -> AnyLearnSettings:
    """Settings of a kind from what is stated, of which all must be of use.

    Raises
    ------
    InputError
        If a value is out of range, or other settings leave it without a use.
    """
    settings = kind(**stated)
    for name in settings.unused:
        if name in stated:
            raise InputError(
                f"{settings.unused_by} makes no use of {name}; leave it out.",
                f"--{name.replace('_', '-')}",
                code="option-unused",
            )
    return settings


@dataclass(frozen=True)
class StudySettings:
    """Everything that a study depends on, besides the data."""

    grid: AnyGridSettings = field(default_factory=GridSettings)
    window: WindowSettings = field(default_factory=WindowSettings)
    learn: LearnSettings = field(default_factory=LearnSettings)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """For JSON: all that makes the study again, areas too."""
        parts: dict[str, WindowSettings | LearnSettings] = {
            "window": self.window,
            "learn": self.learn,
        }
        plain = {
            name: {f.name: _plain(getattr(part, f.name)) for f in fields(part)}
            for name, part in parts.items()
        }
        return {"grid": grid_to_dict(self.grid), **plain}

    @classmethod
    def from_dict(cls, values: dict[str, dict[str, Any]]) -> Self:
        """Back from JSON, of an earlier version too, checked again."""
        window = of_today(values["window"])
        window["times"] = tuple(window["times"])
        return cls(
            grid_from_dict(values["grid"]),
            WindowSettings(**window),
            LearnSettings(**_learn_from_dict(of_today(values["learn"]))),
        )


def _learn_from_dict(values: dict[str, Any]) -> dict[str, Any]:
    """Values that `LearnSettings` takes.

    Studies were once kept with a number of replicates that their learner made no use of: of these
    none were simulated. Learners and starts may have the name of an earlier version. Before the
    data chose the weight of the prior it was as given, the noise that was added was assumed, also
    where it was metres when chances were learned, and no worlds were simulated.

    Raises
    ------
    InputError
        If there is no such learner, as the package that added it is not installed.
    """
    named: dict[str, Any] = {
        name: present_name(values[name]) for name in ("inference", "start") if name in values
    }
    name = named.get("inference", LearnSettings.inference)
    if name not in LEARNERS and name not in LEARNERS.faults:
        raise InputError(
            f"There is no learner called {name!r} here; install the package that adds it.",
            code="unknown-learner",
        )
    kept: dict[str, Any] = (
        {} if name in LEARNERS and LEARNERS[name].calibrated else {"calibrate": 0}
    )
    told = {
        "strength": "given", "noise": "given", "replicates": 0,
        "assumed": values.get("misclassify", LearnSettings.misclassify),
        "assumed_m": values.get("sigma_m", LearnSettings.sigma_m),
    }  # fmt: skip
    if values.get("observed") == "positions" and "assumed_m" not in values:
        kept["noise"] = "given"
    return {**told, **values, **named, **kept}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def parse_minutes(text: str) -> int:
    """``20min``, ``1h``, ``0.5h`` or a bare number of minutes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(min|m|h)?\s*", text)
    minutes = float(found[1]) * (60 if found[2] == "h" else 1) if found else 0.0
    if minutes < 1 or abs(minutes - round(minutes)) > 1e-9:
        raise InputError(
            f"Give a whole number of minutes, for example 30min or 1h, not {text!r}.",
            code="malformed-duration",
        )
    return round(minutes)


def parse_clock(text: str) -> str:
    """A time of day ``H:MM`` or ``HH:MM``, as HH:MM."""
    return clock_label(60 * clock_minutes(text))
