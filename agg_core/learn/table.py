"""The table of learners: what each is, takes and needs, known without loading one.

Another package adds a learner by an entry point of the group `GROUP` that gives a `Learner`::

    [project.entry-points."agg_core.learners"]
    my_learner = "my_package.row:MY_LEARNER"

The name of the entry point is that of the learner.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from agg_core.base.errors import InputError

__all__ = [
    "AUTO",
    "CAVITY",
    "GAUSSIAN_PAIRS",
    "GROUP",
    "LEARNERS",
    "LEAST_SQUARES",
    "PAPERS",
    "PRIOR",
    "SAMPLING",
    "VARIANTS",
    "Learner",
    "Learners",
    "learner_named",
    "listed_learners",
    "present_name",
]

GROUP = "agg_core.learners"
"""Entry points of this group add learners."""

PRIOR = 2.0
"""People that pull each row of transitions, unless said otherwise, wherever a learner is called."""

AUTO = "auto"
"""The best learner that there is for the data; see `agg_core.learn.learners.choose_learner`."""

PAPERS = "cfb"
"""The paper's learner, which the others are compared with."""

CAVITY = "cavity"
GAUSSIAN_PAIRS = "gaussian_pairs"
LEAST_SQUARES = "least_squares"
SAMPLING = "sampling"

OBSERVED = ("symbols", "positions")
"""Kinds of observations: counts of symbols, and places as numbers (a Gaussian emission)."""

VARIANTS = ("_calibrated", "_states")
"""Endings by which the Lab names a learner that is calibrated, or given counts of states."""

RENAMED = {"moments": LEAST_SQUARES}
"""Names of earlier versions, which settings and runs kept by them still have."""

NAME = re.compile(r"[a-z][a-z0-9_]*")
REFERENCE = re.compile(r"[\w.]+:\w+")


@dataclass(frozen=True)
class Learner:
    """A row of the table: what people read of a learner, what it takes, and what runs it.

    Attributes
    ----------
    name : what it is called in settings, in Python and on the command line
    label : what a person reads
    about : one sentence: what it does
    steps : "module:function" of a stream of `agg_core.learn.em.LearnState` without end, called with
        an `Aggregates`, the `HMM` to start from, ``fixed`` (see `agg_core.learn.em.em_steps`), and,
        if the row says that it takes them, ``prior``, ``calibrate``, ``noise_map``, ``begin`` and
        ``random_state``. Empty: EM on ``e_step``
    e_step : "module:function" of an `agg_core.learn.esteps.base.Inference`; empty: it has none
    short : a shorter label, for legends; empty: the label
    observes : kinds of observations that it takes, of "symbols" and "positions"
    single, groups : whether it takes single people (M = 1), and groups of more
    learns_emission : whether it learns the emission too, where that is not known
    calibrated : whether ``calibrate`` replicates of simulated groups can correct its E-step
    pulled : whether ``prior`` people pull each row of transitions
    drawn : whether it draws by ``random_state``, so that its objective wavers
    resumed : whether its stream goes on from an `HMM` that it is given as ``begin``, pulled towards
        what another one predicts all the same
    checkpointed : whether its stream goes on with a ``course`` that was stopped (see
        `agg_core.base.checkpoints`), as EM on every E-step does
    readings : whether it takes counts for Poisson readings, by ``noise_map``
    accelerated : whether EM on its E-step leaps ahead
    near : whether it learns from sparse transitions too, of moves that may be alone
    beyond : whether it is said to end below the paper's learner in groups
    tables : tables (d, d) that it holds at work, from which memory is told beforehand
    distribution : the package that added it; empty: this one

    Raises
    ------
    InputError
        If a value is not of its kind.
    """

    name: str
    label: str
    about: str
    steps: str = ""
    e_step: str = ""
    short: str = ""
    observes: tuple[str, ...] = ("symbols",)
    single: bool = True
    groups: bool = True
    learns_emission: bool = False
    calibrated: bool = False
    pulled: bool = False
    drawn: bool = False
    resumed: bool = False
    checkpointed: bool = False
    readings: bool = False
    accelerated: bool = False
    near: bool = False
    beyond: bool = False
    tables: int = 20  # counts, their averages, the prior, products
    distribution: str = ""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or self.name.endswith(VARIANTS):
            raise InputError(
                "The name of a learner is small letters, digits and _, and does not end in "
                f"{' or '.join(VARIANTS)}; it was {self.name!r}.",
                code="learner-ill-named",
            )
        if not (self.label.strip() and self.about.strip()):
            raise InputError(
                f"The learner {self.name} needs a label and a sentence about it.",
                code="learner-undescribed",
            )
        for name in ("steps", "e_step"):
            reference = getattr(self, name)
            if reference and not REFERENCE.fullmatch(reference):
                raise InputError(
                    f"{name} of the learner {self.name} must be written module:function; it was "
                    f"{reference!r}.",
                    code="malformed-reference",
                )
        if not (self.steps or self.e_step or self.name == AUTO):
            raise InputError(
                f"The learner {self.name} has nothing to run; give steps or e_step.",
                code="learner-without-steps",
            )
        if not self.observes or not set(self.observes) <= set(OBSERVED):
            raise InputError(
                f"observes of the learner {self.name} must be of {', '.join(OBSERVED)}; it was "
                f"{self.observes!r}.",
                code="not-a-choice",
            )
        if not (self.single or self.groups):
            raise InputError(
                f"The learner {self.name} must take single people, groups or both.",
                code="learner-takes-nobody",
            )
        if not self.short:
            object.__setattr__(self, "short", self.label)

    def check_sizes(self, *, single: bool) -> None:
        """Refuse single people or groups that it does not take.

        Raises
        ------
        InputError
            If it does not take them.
        """
        if not (self.single if single else self.groups):
            given, other = ("single people", "groups of 2 or more")[:: 1 if single else -1]
            raise InputError(
                f"The learner {self.name} cannot learn from {given}; give it {other}, or choose "
                "another learner.",
                code="learner-unsuited",
            )

    def load(self, reference: str) -> Callable[..., Any]:
        """The function behind ``steps`` or ``e_step``.

        Raises
        ------
        InputError
            If a learner that another package added cannot be loaded.
        """
        module, _, function = reference.partition(":")
        try:
            found: Callable[..., Any] = getattr(import_module(module), function)
        except Exception as fault:
            # What another package raises at import is not ours to foresee.
            if not self.distribution:
                raise
            raise InputError(
                f"The learner {self.name} of the package {self.distribution} cannot run, as "
                f"{reference} cannot be loaded ({_told(fault)}); mend or remove that package.",
                code="learner-not-loaded",
            ) from fault
        return found


class Learners(Mapping[str, Learner]):
    """Learners by name, in the order in which they are offered; others' come last.

    Other packages are asked once, when a learner is first looked for. One that is broken, or takes
    a name that is taken, is left out with a warning; ``faults`` keeps why, by its name.
    """

    def __init__(self, rows: tuple[Learner, ...], group: str = GROUP) -> None:
        self._own = {row.name: row for row in rows}
        self._group = group
        self.faults: dict[str, InputError] = {}

    @property
    def own(self) -> Mapping[str, Learner]:
        """Those of this package."""
        return self._own

    @cached_property
    def _all(self) -> Mapping[str, Learner]:
        by_name = defaultdict(list)
        for entry in entry_points(group=self._group):
            by_name[entry.name].append(entry)
        added = {}
        for name in sorted(by_name):
            try:
                added[name] = _added(name, by_name[name], self._own)
            except InputError as fault:
                self.faults[name] = fault
        for told in self.faults.values():
            warnings.warn(str(told), stacklevel=4)
        return {**self._own, **added}

    def __getitem__(self, name: str) -> Learner:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def _added(name: str, entries: list[EntryPoint], own: Mapping[str, Learner]) -> Learner:
    """The learner of another package.

    Raises
    ------
    InputError
        If it cannot be had, in one sentence that names the package.
    """
    packages = " and ".join(sorted(_package(entry) for entry in entries))
    if name in own or name in RENAMED or len(entries) > 1:
        other = " of this program" if len(entries) == 1 else ""
        raise InputError(
            f"The learner {name} of {packages} is left out, as its name is taken by another"
            f"{other}; have it renamed.",
            code="learner-name-taken",
        )
    try:
        row = entries[0].load()
    except Exception as fault:
        raise InputError(
            f"The learner {name} of {packages} is left out, as it cannot be loaded "
            f"({_told(fault)}); mend or remove that package.",
            code="learner-not-loaded",
        ) from fault
    if not isinstance(row, Learner) or row.name != name:
        raise InputError(
            f"The learner {name} of {packages} is left out, as {entries[0].value} is no Learner of "
            "that name; mend or remove that package.",
            code="not-a-learner",
        )
    return replace(row, distribution=packages)


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


def _told(fault: Exception) -> str:
    """A fault in one line that fits into a sentence."""
    return f"{type(fault).__name__}: {' '.join(str(fault).split()).rstrip('.')}"


LEARNERS = Learners(
    (
        Learner(
            AUTO,
            "Best for the data",
            "Takes whichever of the others was measured to be best for such data, and says why.",
            observes=OBSERVED,
            learns_emission=True,
            pulled=True,
            drawn=True,
            near=True,
            beyond=True,
        ),
        Learner(
            SAMPLING,
            "MCMC over individual assignments",
            "Draws who of a group is who, and averages: right at every size of group of whole "
            "people.",
            steps="agg_core.learn.streams:sampling",
            e_step="agg_core.learn.esteps.sampling:sampled_counts",
            observes=OBSERVED,
            learns_emission=True,
            pulled=True,
            drawn=True,
            resumed=True,
            checkpointed=True,
            near=True,
            beyond=True,
        ),
        Learner(
            CAVITY,
            "Cavity CFB",
            "CFB in which each person is weighed against the others of the group only; takes parts "
            "of people too.",
            e_step="agg_core.learn.esteps.cavity:cavity_forward_backward",
            observes=OBSERVED,
            learns_emission=True,
            calibrated=True,
            pulled=True,
            accelerated=True,
            beyond=True,
        ),
        Learner(
            GAUSSIAN_PAIRS,
            "Gaussian pairs",
            "Takes the next counts of a group to be normal given its present ones: right where "
            "cells hold many people.",
            steps="agg_core.learn.streams:gaussian_pairs",
            pulled=True,
            resumed=True,
            checkpointed=True,
            beyond=True,
            # L-BFGS keeps steps and slopes of the past, threads their sums.
            tables=45,
        ),
        Learner(
            PAPERS,
            "Collective forward-backward (the paper's)",
            "The paper's learner: exact for single people, and inventing movement in groups.",
            short="CFB",
            e_step="agg_core.learn.esteps.cfb:collective_forward_backward",
            observes=OBSERVED,
            learns_emission=True,
            calibrated=True,
            near=True,
        ),
        Learner(
            LEAST_SQUARES,
            "Conditional least squares",
            "Fits the next counts of each group to its present ones by least squares: quick, and "
            "in need of many groups per cell.",
            short="Least squares",
            steps="agg_core.learn.streams:least_squares",
            checkpointed=True,
        ),
        Learner(
            "nlbp",
            "NLBP, Poisson noise",
            "Takes counts for Poisson readings, by damped belief propagation.",
            short="NLBP",
            e_step="agg_core.learn.esteps.poisson:nlbp",
            readings=True,
        ),
        Learner(
            "bethe_rda",
            "Bethe-RDA, Poisson noise",
            "Takes counts for Poisson readings, by regularised dual averaging.",
            short="Bethe-RDA",
            e_step="agg_core.learn.esteps.poisson:bethe_rda",
            readings=True,
        ),
        Learner(
            "prox",
            "Prox, Poisson noise",
            "Takes counts for Poisson readings, by mirror descent with a line search.",
            short="Prox",
            e_step="agg_core.learn.esteps.poisson:prox",
            readings=True,
        ),
    )
)
"""All learners by name, in the order in which they are offered."""


def learner_named(name: str) -> Learner:
    """The learner of that name.

    Raises
    ------
    InputError
        If there is none; of one that another package should have added, why it is not there.
    """
    if name in LEARNERS:
        return LEARNERS[name]
    if name in LEARNERS.faults:
        fault = LEARNERS.faults[name]
        raise InputError(str(fault), code=fault.code)
    raise InputError(
        f"There is no learner called {name!r}; choose one of: {', '.join(LEARNERS)}.",
        code="unknown-learner",
    )


def listed_learners(which: Callable[[Learner], bool]) -> str:
    """Short labels of some learners as a sentence has them."""
    labels = [row.short for row in LEARNERS.values() if row.name != AUTO and which(row)]
    return " and ".join(part for part in (", ".join(labels[:-1]), labels[-1]) if part)


def present_name(name: str) -> str:
    """The name of today of a learner or a start that was named by an earlier version."""
    return RENAMED.get(name, name)
