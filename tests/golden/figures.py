"""Figures that must stay when code is only moved, and runs that were saved by format 2.

``python -m tests.golden.figures`` writes the figures anew, which is right only beside a change that
is meant to change them and is told in the changelog. The runs are never written anew: they show
that what people saved still opens.
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from agg_core.io import read_trajectories
from agg_core.io.counts import read_counts
from agg_core.made.counts import docomo_csv, simulate_city
from agg_core.made.samples import SAMPLES, sample_path
from agg_core.space.settings import GridSettings
from agg_core.study.counts import count_study_steps
from agg_core.study.people import StudyResult, study_steps
from agg_core.study.settings import CountLearnSettings, LearnSettings, StudySettings, WindowSettings
from tests.agg_core import tiny

FOLDER = Path(__file__).parent
FIGURES = FOLDER / "figures.json"
RUNS = FOLDER / "runs"

LEARNERS = ("auto", "cavity", "cfb", "gaussian_pairs", "least_squares")

CROWDS = {"few": 60, "many": 600}
"""People of whom both learners from counts are tried, and of whom one is."""


def of_array(values):
    """An array as few numbers that hardly any other array has."""
    flat = np.asarray(values, dtype=float).ravel()
    weights = np.cos(np.arange(flat.size))
    return [float(flat.sum()), float(flat @ flat), float(flat @ weights)]


@cache
def sample_people():
    return read_trajectories(sample_path("tokyo_commuters"))


def sample_study(learner):
    """The sample city at 8:00 on 7 x 8 cells, learned for a few iterations."""
    about = SAMPLES["tokyo_commuters"]
    settings = StudySettings(
        GridSettings(*about.bounds, about.rows // 2, about.cols // 2),
        WindowSettings(about.step_minutes, about.length, ("08:00",)),
        LearnSettings(
            group_size=20,
            inference=learner,
            noise="given",
            strength="given",
            iterations=4,
            replicates=0,
        ),
    )
    *_, result = study_steps(sample_people(), settings)
    return result


def of_study(result):
    (found,) = result.by_time
    summary = result.summary()
    figures = {name: summary[name] for name in ("n_individuals", "n_states", "learner", "dropped")}
    for name in ("vs_single", "vs_counted"):
        figures[name] = getattr(result, name).to_dict()
    for source in ("estimate", "single"):
        fit = getattr(found, source)
        figures[source] = {
            "startprob": of_array(fit.startprob),
            "transmat": of_array(fit.transmat),
            "history": of_array(fit.history),
        }
    for source in ("estimate", "single", "counted"):
        table = result.table("08:00", source)
        largest = table[["origin", "dest", "count"]].head(3)
        figures[f"{source}_flows"] = [float(table["count"].sum()), largest.to_numpy().tolist()]
    return figures


def sample_counts(crowd):
    """The counts of a city of six cells, everything chosen, with two simulated worlds."""
    city = simulate_city(2, 3, days=2, people=CROWDS[crowd], random_state=0)
    table = read_counts(docomo_csv(city).encode())
    *_, result = count_study_steps(table, CountLearnSettings(replicates=2))
    return result


def of_counts(study):
    return {
        "learner": study.learner,
        "n_pairs": study.n_pairs,
        "transmats": of_array(study.transmats),
        "people": of_array(study.people),
        "scores": of_array(study.candidates["score"].dropna()),
        "held_out": of_array(study.held_out["mae"]),
        "day_flows": {
            name: of_array(study.day_flows[name])
            for name in ("origin", "dest", "count", "low", "high")
        },
    }


def tiny_study() -> StudyResult:
    """Sixty people at two times of day, of whom some leave the extent."""
    window = replace(tiny.HOURLY, times=("08:00", "20:00"))
    return tiny.run(tiny.people(outside=True), tiny.settings(window=window))[1]


def compute():
    return {f"study {name}": of_study(sample_study(name)) for name in LEARNERS} | {
        f"counts of {crowd}": of_counts(sample_counts(crowd)) for crowd in CROWDS
    }


def write():
    FIGURES.write_text(json.dumps(compute(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
