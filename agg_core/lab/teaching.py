"""What aggregation hides: one city's morning, learned from groups of every size by two learners.

The same people, the same noise and the same start; only the number M of people in a group grows.
The paper's learner and another see the same counts. Coarse cells and a few thousand people keep
all sizes together under half a minute.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Self

import pandas as pd

from agg_core.base.checkpoints import checkpoints, use_checkpoints
from agg_core.base.options import Checked, option_field, options_of
from agg_core.io import read_trajectories
from agg_core.learn.table import AUTO, LEARNERS, PAPERS
from agg_core.made.samples import SAMPLES, sample_path
from agg_core.space.settings import GridSettings
from agg_core.study.people import StudyResult, study_steps
from agg_core.study.settings import LearnSettings, StudySettings, WindowSettings
from agg_core.tables.flows import FlowComparison, compare_flows
from agg_core.tables.trajectories import Trajectories

__all__ = [
    "GROUP_SIZES",
    "TEACHING_TIME",
    "TRUTH",
    "TeachingPoint",
    "TeachingProgress",
    "TeachingResult",
    "TeachingSettings",
    "learner_label",
    "sample_people",
    "teaching_steps",
]

SAMPLE = SAMPLES["tokyo_commuters"]
ROWS, COLS = 7, 8
TEACHING_TIME = "08:00"
"""Local time at which the windows begin: the morning rush."""

GROUP_SIZES = (1, 2, 5, 10, 20, 50, 100)
TRUTH = 0
"""Marks the flows of single people among those of the group sizes."""

ARROW_SHARE = 5e-4
"""An arrow is a flow above this share of the people, however many there are."""

CHOICE = options_of(LearnSettings)["inference"]


def learner_label(learner: str) -> str:
    """What a person reads for a learner."""
    row = LEARNERS[learner]
    return f"{row.short}, the paper's" if learner == PAPERS else row.label


@dataclass(frozen=True)
class TeachingSettings(Checked):
    """The learner beside CFB and how much they are given; the city, the hour, the noise stand."""

    learner: str = option_field(
        AUTO, "Learner beside CFB", CHOICE.help,
        choices=CHOICE.choices, choice_labels=CHOICE.choice_labels,
    )  # fmt: skip
    n_people: int = option_field(
        3000, "People", "The first so many people of the sample city.",
        least=max(GROUP_SIZES), most=SAMPLE.n_people, step=1000,
    )  # fmt: skip
    iterations: int = option_field(
        30, "Iterations", "Most EM iterations at each group size.", least=1, most=500, step=10
    )
    seed: int = option_field(
        0, "Seed", "Draws the noise and the groups; the same seed gives the same figures.",
        least=0, most=2**31 - 1, step=1,
    )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Back from JSON, checked again."""
        return cls(**values)

    @property
    def threshold(self) -> float:
        """Flows above this many people per step are arrows."""
        return ARROW_SHARE * self.n_people

    @property
    def grid(self) -> GridSettings:
        """The sample's extent in cells of twice the usual side."""
        return GridSettings(*SAMPLE.bounds, ROWS, COLS)

    @property
    def learners(self) -> tuple[str, ...]:
        """The paper's learner and the one beside it, if it is another."""
        return tuple(dict.fromkeys((PAPERS, self.learner)))

    def study(self, learner: str, group_size: int) -> StudySettings:
        """The study at one group size."""
        learn = LearnSettings(
            group_size=group_size,
            inference=learner,
            iterations=self.iterations,
            replicates=0,
            threshold=self.threshold,
            seed=self.seed,
        )
        window = WindowSettings(SAMPLE.step_minutes, SAMPLE.length, (TEACHING_TIME,))
        return StudySettings(self.grid, window, learn)


@dataclass(frozen=True)
class TeachingProgress:
    """Where the view stands: at ``group_size``, ``done`` of ``n_runs`` studies' worth of work."""

    learner: str
    group_size: int
    done: float
    n_runs: int

    @property
    def share(self) -> float:
        """Share of all work done, 0 to 1."""
        return self.done / self.n_runs


@dataclass(frozen=True)
class TeachingPoint:
    """What a learner saw in groups of one size: movers per step, and against single people.

    ``taken`` is the learner itself, or the one that "auto" stood for.
    """

    learner: str
    group_size: int
    taken: str
    moves: float
    figures: FlowComparison


@dataclass(frozen=True)
class TeachingResult:
    """The flows at every group size by every learner.

    ``true_moves`` are the people who move per step, learned from single people by the exact
    likelihood. ``flows`` has the columns of `flow_table`, ``learner`` and ``group_size``; those of
    single people have `TRUTH` for a group size and no learner ("").
    """

    settings: TeachingSettings
    true_moves: float
    points: tuple[TeachingPoint, ...]
    flows: pd.DataFrame
    wall_s: float

    @property
    def learners(self) -> tuple[str, ...]:
        """The paper's learner first."""
        return self.settings.learners

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """Group sizes, smallest first."""
        return tuple(dict.fromkeys(point.group_size for point in self.points))

    @property
    def largest(self) -> float:
        """Largest flow between two cells at any group size: the end of the scale of all maps."""
        outside = ROWS * COLS
        ends = self.flows[["origin", "dest"]]
        drawn = (ends["origin"] != ends["dest"]) & (ends != outside).all(axis=1)
        return float(self.flows.loc[drawn, "count"].max()) if drawn.any() else 1.0

    def point(self, learner: str, group_size: int) -> TeachingPoint:
        """Figures of one learner at one group size."""
        return next(
            point
            for point in self.points
            if (point.learner, point.group_size) == (learner, group_size)
        )

    def table(self, learner: str, group_size: int) -> pd.DataFrame:
        """Flow table that a learner made from groups of one size."""
        mine = (self.flows["learner"] == learner) & (self.flows["group_size"] == group_size)
        return self.flows.loc[mine].drop(columns=["learner", "group_size"]).reset_index(drop=True)

    @property
    def truth(self) -> pd.DataFrame:
        """Flow table of single people."""
        return self.table("", TRUTH)


def teaching_steps(settings: TeachingSettings) -> Iterator[TeachingProgress | TeachingResult]:
    """Learn the sample city's morning at every group size, by the paper's learner and another.

    Yields `TeachingProgress` after every iteration and the `TeachingResult` at the end.
    """
    began = time.perf_counter()
    people = sample_people(settings.n_people)
    studies: dict[tuple[str, int], StudyResult] = {}
    remembered: dict[str, Any] = {}
    runs = _runs(settings)
    for done, (learner, size) in enumerate(runs):
        # All see the same people, and all learners the same groups: noise is found once in them.
        # Names of what is kept are those of one study: each has a folder of its own.
        with use_checkpoints(checkpoints().below(f"study/{done}")):
            for step in study_steps(people, settings.study(learner, size), remembered):
                if isinstance(step, StudyResult):
                    studies[learner, size] = step
                    remembered = {**remembered, **step.remembered}
                else:
                    yield TeachingProgress(learner, size, done + step.share, len(runs))
    for learner in settings.learners:
        studies[learner, 1] = studies[PAPERS, 1]
    single = studies[PAPERS, GROUP_SIZES[-1]]
    truth, true = single.table(TEACHING_TIME, "single"), single.matrix(TEACHING_TIME, "single")
    matrices = {run: study.matrix(TEACHING_TIME, "estimate") for run, study in studies.items()}
    tables = {run: study.table(TEACHING_TIME, "estimate") for run, study in studies.items()}
    points = tuple(
        TeachingPoint(
            learner=learner,
            group_size=size,
            taken=studies[learner, size].learner,
            moves=_moves(tables[learner, size]),
            figures=compare_flows(matrices[learner, size], true, settings.threshold),
        )
        for learner, size in product(settings.learners, GROUP_SIZES)
    )
    tables["", TRUTH] = truth
    flows = [
        table.assign(learner=learner, group_size=size) for (learner, size), table in tables.items()
    ]
    yield TeachingResult(
        settings=settings,
        true_moves=_moves(truth),
        points=points,
        flows=pd.concat(flows, ignore_index=True),
        wall_s=time.perf_counter() - began,
    )


def _runs(settings: TeachingSettings) -> list[tuple[str, int]]:
    """Learners and group sizes, the small ones first; single people are learned from once.

    They hide nothing: the paper's learner is exact there, and none can do better.
    """
    return [
        (learner, size)
        for size in GROUP_SIZES
        for learner in settings.learners
        if size > 1 or learner == PAPERS
    ]


def sample_people(n_people: int) -> Trajectories:
    """The first people of the shipped sample, in the order of its file."""
    table = pd.read_parquet(sample_path(SAMPLE.key))
    first = table["user_id"].drop_duplicates().iloc[:n_people]
    return read_trajectories(table.loc[table["user_id"].isin(first)], tz=SAMPLE.timezone)


def _moves(flows: pd.DataFrame) -> float:
    return float(flows.loc[flows["origin"] != flows["dest"], "count"].sum())
