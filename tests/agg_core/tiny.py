"""Sixty made-up people on a 3 x 3 grid for a day, with the state of every hour known."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd

from agg_core.io import read_trajectories
from agg_core.space.settings import GridSettings
from agg_core.study.people import Progress, study_steps
from agg_core.study.settings import LearnSettings, StudySettings, WindowSettings

N_PEOPLE = 60
OUTSIDE = 9
GRID = GridSettings(139.0, 35.0, 139.3, 35.3, 3, 3)
HOURLY = WindowSettings(step_minutes=60, length=3)
LEARN = LearnSettings(
    group_size=5, misclassify=0.05, noise="given", strength="given", iterations=4, replicates=0,
    threshold=2.0, seed=7,
)  # fmt: skip


def settings(window=HOURLY, grid=GRID, **learn):
    """Unless it is said otherwise the noise that is added is the one that is allowed for."""
    if "misclassify" in learn:
        learn = {"assumed": learn["misclassify"], **learn}
    if "sigma_m" in learn:
        learn = {"assumed_m": learn["sigma_m"], **learn}
    return StudySettings(grid, window, replace(LEARN, **learn))


def day_states(outside=False):
    """State of each person at each hour, (60, 24): a walk that stays put half of the time."""
    rng = np.random.default_rng(1)
    states = np.empty((N_PEOPLE, 24), dtype=int)
    states[:, 0] = rng.integers(0, 9, N_PEOPLE)
    for hour in range(1, 24):
        moves = rng.random(N_PEOPLE) < 0.5
        states[:, hour] = np.where(moves, rng.integers(0, 9, N_PEOPLE), states[:, hour - 1])
    if outside:
        states[:10, 5:10] = OUTSIDE
    return states


def frame(states):
    """One fix per person and hour, somewhere in the cell of the state."""
    rng = np.random.default_rng(2)
    person, hour = (a.ravel() for a in np.indices(states.shape))
    row, col = np.divmod(states.ravel(), 3)
    col = np.where(states.ravel() == OUTSIDE, 7, col)
    row = np.where(states.ravel() == OUTSIDE, 1, row)
    shift = rng.uniform(-0.04, 0.04, (2, states.size))
    return pd.DataFrame(
        {
            "user_id": [f"p{i:02d}" for i in person],
            "time": pd.Timestamp("2024-05-01T00:10Z") + pd.to_timedelta(hour, unit="h"),
            "lon": 139.05 + 0.1 * col + shift[0],
            "lat": 35.05 + 0.1 * row + shift[1],
        }
    )


@cache
def people(outside=False):
    return read_trajectories(frame(day_states(outside)))


@cache
def people_of_two_days():
    """The same people, who do on the second day what they did on the first."""
    first = frame(day_states())
    second = first.assign(time=first["time"] + pd.Timedelta(days=1))
    return read_trajectories(pd.concat([first, second]))


def run(trajectories, chosen):
    """All the progress of a study, and its result."""
    *progress, result = study_steps(trajectories, chosen)
    assert all(isinstance(step, Progress) for step in progress)
    return progress, result


def counted_by_hand(windows):
    """Flows per step of windows of states, by adding up one move after the other."""
    flows = {}
    for window in windows:
        for pair in pairwise(window):
            key = (int(pair[0]), int(pair[1]))
            flows[key] = flows.get(key, 0.0) + 1 / (len(window) - 1)
    return flows


def whole_day_windows(states, length=3):
    return [w for person in states for w in person.reshape(-1, length)]


def is_one_sentence(text):
    """One line that begins with a capital (or a file name), ends with a full stop, once."""
    return "\n" not in text and text.endswith(".") and ". " not in text
