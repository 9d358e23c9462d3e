"""What a session remembers between reruns: ids and settings, never arrays."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from agg_core.settings import GridSettings, LearnSettings, StudySettings, WindowSettings

__all__ = ["AppState", "Choices", "Dataset", "Run", "state"]


@dataclass(frozen=True)
class Choices:
    """How a person told us to read their file; None or empty is left to the reader."""

    columns: tuple[tuple[str, str], ...] = ()
    tz: str | None = None
    where: tuple[str, str] | None = None


@dataclass(frozen=True)
class Dataset:
    """The data that is open: its id in the workspace and what to call it."""

    key: str
    title: str


@dataclass(frozen=True)
class Run:
    """A learner: its id in the workspace, the title of its data and its settings."""

    key: str
    title: str
    settings: StudySettings


@dataclass
class AppState:
    """The session's data, settings and jobs."""

    dataset: Dataset | None = None
    tried: Choices | None = None
    """How the last upload was read, whether that went well or not."""
    fault: str | None = None
    """Why it did not."""
    grid: GridSettings = field(default_factory=GridSettings)
    window: WindowSettings = field(default_factory=WindowSettings)
    learn: LearnSettings = field(default_factory=LearnSettings)
    run: Run | None = None
    """The learner that was started last."""
    finished: Run | None = None
    """The one whose flows are shown: the last that ended well."""

    @property
    def settings(self) -> StudySettings:
        """All settings together."""
        return StudySettings(self.grid, self.window, self.learn)


def state() -> AppState:
    """The state of the session that asks."""
    if "app" not in st.session_state:
        st.session_state["app"] = AppState()
    found: AppState = st.session_state["app"]
    return found
