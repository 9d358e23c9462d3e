"""Memory that is told before work of the Lab: measured peaks, and what it grows with."""

from dataclasses import replace

import pytest

from agg_core.base.threads import one_thread
from agg_core.lab.experiments import LabSettings
from agg_core.lab.memory import experiment_megabytes, teaching_megabytes
from agg_core.lab.teaching import TeachingSettings
from agg_core.made.samples import SAMPLES

QUICK = LabSettings(n_states=(5,), group_sizes=(10,), n_individuals=(1000,), lengths=(5,))


@pytest.mark.parametrize(
    ("sizes", "peak"),
    [
        ({}, 267),
        ({"n_states": (20,), "n_individuals": (20_000,), "lengths": (10,)}, 286),
        ({"n_states": (100,), "n_individuals": (20_000,), "lengths": (10,)}, 288),
        ({"n_states": (20,), "n_individuals": (100_000,), "lengths": (20,)}, 519),
    ],
)
def test_it_is_near_what_was_measured(sizes, peak):
    with one_thread():
        assert peak / 1.3 < experiment_megabytes(replace(QUICK, **sizes)) < 1.3 * peak


def test_the_largest_of_the_cases_and_all_cores_count():
    several = replace(QUICK, n_individuals=(1000, 100_000), lengths=(5, 100))
    largest = replace(QUICK, n_individuals=(100_000,), lengths=(100,))
    with one_thread():
        assert experiment_megabytes(several) == experiment_megabytes(largest)
        alone = experiment_megabytes(largest)
    assert experiment_megabytes(largest) >= alone > 1_000


def test_flows_at_every_group_size_take_what_a_study_does():
    few = teaching_megabytes(TeachingSettings())
    assert 300 < few < 1_000
    many = TeachingSettings(n_people=SAMPLES["tokyo_commuters"].n_people)
    assert teaching_megabytes(many) > few
