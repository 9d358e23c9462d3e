"""What a session remembers between reruns: ids and settings, never arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import streamlit as st

from agg_core.base.engine import LOCAL
from agg_core.io import Choices
from agg_core.io.counts.choices import CountChoices
from agg_core.lab.experiments import LabSettings
from agg_core.lab.teaching import TeachingSettings
from agg_core.space.settings import AnyGridSettings, GridSettings
from agg_core.study.lasting import Lasting
from agg_core.study.settings import (
    CountLearnSettings,
    GateLearnSettings,
    LearnSettings,
    StudySettings,
    WindowSettings,
)
from agg_core.study.sweeps import Sweep
from ui import owner as owner_of
from ui.workspace import workspace

__all__ = ["AppState", "Dataset", "OutlineChoice", "Run", "Runs", "state"]

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Dataset:
    """The data that is open: its id in the workspace, what to call it, what it holds.

    ``shipped`` is the key of the shipped run that was learned from it, if it is a sample.
    """

    key: str
    title: str
    kind: Literal["trajectories", "counts", "gates"] = "trajectories"
    shipped: str | None = None


@dataclass(frozen=True)
class Run(Generic[Settings]):
    """A job: its id in the store of jobs, the title of its data or experiment, and its settings.

    ``saved`` is its id in the store once it is there; that of a run opened from the store is also
    its ``key``. ``lasting`` is how long it was told to take.
    """

    key: str
    title: str
    settings: Settings
    saved: str | None = field(default=None, compare=False)
    lasting: Lasting | None = field(default=None, compare=False)


@dataclass
class Runs(Generic[Settings]):
    """The job of a kind that was started last, and the one shown: the last that ended well.

    Another may be shown since, opened from the store: ``taken`` is the last job that was shown.
    """

    run: Run[Settings] | None = None
    finished: Run[Settings] | None = None
    taken: str | None = None


@dataclass(frozen=True)
class OutlineChoice:
    """The outline under the maps: shipped, none or own; an own one by its id in the workspace."""

    kind: str = "shipped"
    name: str = ""
    key: str = ""


@dataclass
class AppState:
    """The session's data, settings and jobs."""

    dataset: Dataset | None = None
    tried: Choices | CountChoices | None = None
    """How the last upload was read, whether that went well or not."""
    reading: bool = False
    """Whether an upload is being read, or has been and is not opened yet."""
    fault: str | None = None
    """Why it did not."""
    remedy: tuple[str, str] | None = None
    """The choice of reading, and its value, that would mend that."""
    other: Literal["movements", "places"] | None = None
    """What the last file holds, if it goes with other data and is none to learn from."""
    grid: AnyGridSettings = field(default_factory=GridSettings)
    window: WindowSettings = field(default_factory=WindowSettings)
    learn: LearnSettings = field(default_factory=LearnSettings)
    study: Runs[StudySettings] = field(default_factory=Runs)
    """The learner; the flows shown are those of the last that ended well, or of a saved run."""
    count_learn: CountLearnSettings = field(default_factory=CountLearnSettings)
    counts: Runs[CountLearnSettings] = field(default_factory=Runs)
    """The learner of flows from counts; shown as those of a study are."""
    gate_learn: GateLearnSettings = field(default_factory=GateLearnSettings)
    gates: Runs[GateLearnSettings] = field(default_factory=Runs)
    """The learner of flows from entries and exits; shown as those of a study are."""
    sweeps: Runs[Sweep] = field(default_factory=Runs)
    """Comparisons of several values of a setting."""
    shows: str = "study"
    """Of what kind the flows are that are shown, if there are any of it."""
    engine: str = LOCAL
    """Who does the work of the learner, if the server's owner allows it still."""
    onward: str | None = None
    """The job after whose end the page Learn goes on to the flows by itself."""
    made: list[str] = field(default_factory=list)
    """Ids of the runs that this session saved: it may rename and delete them."""
    opened: list[str] = field(default_factory=list)
    """Ids of the saved runs of others that this session opened by their address."""
    experiments: Runs[LabSettings] = field(default_factory=Runs)
    own: dict[str, LabSettings] = field(default_factory=dict)
    """Own values of each experiment of the Lab, by its name."""
    views: Runs[TeachingSettings] = field(default_factory=Runs)
    teaching: TeachingSettings = field(default_factory=TeachingSettings)
    outline: OutlineChoice = field(default_factory=OutlineChoice)
    """What lies under the maps."""
    outline_fault: str | None = None
    """Why the last outline that was tried could not be read."""

    @property
    def shown(self) -> Runs[Any]:
        """The runs whose finished one the page Flows shows."""
        chosen = self.learned[self.shows]
        return chosen if chosen.finished is not None else self.study

    def show(self, kind: str) -> None:
        """Let the flows that are shown be those of a kind of result, one of ``learned``."""
        self.shows = next(each for each in self.learned if each == kind)

    @property
    def learned(self) -> dict[str, Runs[Any]]:
        """The runs of each kind whose flows the page Flows can show, by the kind of the result."""
        return {"study": self.study, "counts": self.counts, "gates": self.gates}

    @property
    def settings(self) -> StudySettings:
        """All settings together."""
        return StudySettings(self.grid, self.window, self.learn)


OWN = ("app", owner_of.KEY)
"""What the session must not lose: its own browser may have its caches and its state cleared."""


def state() -> AppState:
    """The state of the session that asks."""
    held = workspace().held
    for key in OWN:
        if key in st.session_state:
            held[key] = st.session_state[key]
        elif key in held:
            st.session_state[key] = held[key]
    if "app" not in st.session_state:
        st.session_state["app"] = held["app"] = AppState()
    found: AppState = st.session_state["app"]
    return found
