"""The runs that come with the package are what their samples tell, learned anew."""

import numpy as np
import pytest

from agg_core.made.samples import sample_settings
from agg_core.store.runs import RUN_ID
from agg_core.store.shipped_runs import SHIPPED_RUNS, learn_shipped, load_shipped
from agg_core.study.settings import CountLearnSettings
from tests.faults import refused

PEOPLE = 1e-3
"""Flows may differ by so many: numbers of shipped runs are rounded to make their files small."""

MOST_BYTES = 1_500_000


@pytest.mark.parametrize("key", SHIPPED_RUNS)
def test_learned_anew_a_shipped_run_has_the_same_flows(key):
    *_, anew = learn_shipped(key)
    kept = load_shipped(key)
    assert kept.settings == anew.settings
    assert kept.times == anew.times
    for time in anew.times:
        for source in ("estimate", *anew.references):
            np.testing.assert_allclose(
                kept.matrix(time, source), anew.matrix(time, source), rtol=1e-6, atol=PEOPLE
            )
    for time in anew.times:
        assert_same_table(kept.table(time), anew.table(time))


def assert_same_table(kept, anew):
    """Every flow of at least `PEOPLE` is in both, with the same interval."""
    seen, ends = anew.loc[anew["count"] > PEOPLE], ["origin", "dest"]
    both = seen.merge(kept, on=ends, how="left", suffixes=("_anew", "_kept"))
    for name in ("count", "low", "high"):
        np.testing.assert_allclose(both[f"{name}_kept"], both[f"{name}_anew"], atol=PEOPLE)


def test_settings_are_those_that_a_person_meets_first():
    assert load_shipped("sample-tokyo").settings == sample_settings("tokyo_commuters")
    assert load_shipped("sample-counts").settings == CountLearnSettings(replicates=4)


def test_intervals_and_days_come_with_a_shipped_run():
    for key in SHIPPED_RUNS:
        assert load_shipped(key).has_intervals
    assert len(load_shipped("sample-counts").days) == 7


@pytest.mark.parametrize("key", SHIPPED_RUNS)
def test_shipped_files_are_small_and_no_saved_run_has_such_an_id(key, repository):
    folder = repository / "data" / "runs" / key
    assert 0 < sum(file.stat().st_size for file in folder.iterdir()) < MOST_BYTES
    assert not RUN_ID.fullmatch(key)


@pytest.mark.parametrize("key", ["", "..", "sample-tokyo/", "../runs/sample-tokyo", "a" * 32])
def test_no_other_key_opens_a_file(key):
    with refused("unknown-run"):
        load_shipped(key)
