"""A run of the sample city as a user of the app would save it, made without the pages."""

from __future__ import annotations

from pathlib import Path

from agg_core.io import read_trajectories
from agg_core.made.samples import SAMPLES, sample_path
from agg_core.space.settings import GridSettings
from agg_core.store.runs import RunStore
from agg_core.study.people import StudyResult, study_steps
from agg_core.study.settings import LearnSettings, StudySettings, WindowSettings

__all__ = ["save_city"]

TIMES = ("02:00", "08:00", "14:00")


def save_city(home: Path, iterations: int = 4) -> str:
    """Learn the flows of the shipped city at three times of day; return the id of the saved run."""
    about = SAMPLES["tokyo_commuters"]
    settings = StudySettings(
        GridSettings(*about.bounds, about.rows, about.cols),
        WindowSettings(about.step_minutes, about.length, TIMES),
        LearnSettings(noise="given", strength="given", iterations=iterations, replicates=0),
    )
    people = read_trajectories(sample_path(about.key), tz=about.timezone)
    *_, result = study_steps(people, settings)
    assert isinstance(result, StudyResult)
    return RunStore(home / "runs").save(result, about.title).id
