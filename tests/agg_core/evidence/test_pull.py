"""How far flows move without a source: sums by hand, what stays the same, what is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from agg_core.evidence.pull import pull_of
from agg_core.study.result import WHOLE_DAY
from tests.agg_core import counted
from tests.faults import refused

MORNING, NIGHT = counted.MORNING, counted.NIGHT


def changed(flows=None, **day):
    """The study by hand with other flows in the morning."""
    study = counted.drawn()
    table = counted.timed({**counted.HAPPENED, MORNING: flows or counted.HAPPENED[MORNING]})
    return replace(study, happened=replace(study.happened, flows=table), **day)


# Moves of the morning are 0 to 1: 8, 1 to 0: 0.5, 0 to the outside: 2.5, 5 to 2: 4; 15 in all.
OTHER = {
    (0, 1): (5.0, 2.0, 8.0, True),
    (1, 0): (0.5, 0.0, 4.0, False),
    (0, 0): (18.0, 16.0, 20.0, True),
    (0, counted.OUT): (2.5, 0.5, 4.5, True),
    (5, 2): (4.0, 2.0, 6.0, True),
    (3, 4): (1.0, 0.0, 2.0, False),
}


def test_flows_are_apart_by_their_differences_over_what_moves():
    found = pull_of(changed(), {"gates": changed(OTHER)}, [MORNING, NIGHT]).flows
    morning, night = found.to_dict("records")
    assert (morning["source"], morning["time"]) == ("gates", MORNING)
    assert morning["n_movers"] == pytest.approx(15)
    assert morning["n_movers_without"] == pytest.approx(13)
    assert morning["moved"] == pytest.approx((3 + 1) / 15)
    assert morning["cpc"] == pytest.approx(2 * (5 + 0.5 + 2.5 + 4) / (15 + 13))
    # Above the threshold of 2 are 0 to 1, 0 to the outside and 5 to 2.
    assert morning["width"] == pytest.approx((6 + 4 + 4) / (3 + 2 + 2))
    assert (night["moved"], night["cpc"], night["width"]) == (0, 1, 1)


def test_places_are_those_whose_flows_move():
    found = pull_of(changed(), {"gates": changed(OTHER)}, [MORNING]).places
    assert list(found.columns) == [
        "source", "time", "place", "end", "count", "count_without", "moved",
    ]  # fmt: skip
    names = counted.drawn().states.names
    out = found.loc[found["end"] == "origin"].set_index("place")
    assert out.loc[names[0], ["count", "count_without"]].tolist() == [10.5, 7.5]
    assert out.loc[names[0], "moved"] == pytest.approx(3 / 10.5)
    assert out.loc[names[3], ["count", "count_without"]].tolist() == [0, 1]
    assert np.isnan(out.loc[names[3], "moved"])
    into = found.loc[found["end"] == "dest"].set_index("place")
    assert into.loc[names[1], ["count", "count_without"]].tolist() == [8, 5]
    assert into.loc[names[counted.OUT], "moved"] == 0
    for end in (out, into):
        assert end["count"].sum() == pytest.approx(15)


def test_the_source_that_pulls_most_comes_first():
    found = pull_of(changed(), {"matrix": changed(), "gates": changed(OTHER)}, [MORNING])
    assert found.sources == ("gates", "matrix")


def test_all_common_times_are_compared_if_none_is_said():
    found = pull_of(counted.drawn(), {"gates": counted.drawn()})
    assert found.flows["time"].tolist() == [WHOLE_DAY, MORNING, NIGHT]
    assert found.flows["moved"].tolist() == [0, 0, 0]


def test_flows_without_intervals_have_no_width():
    study = counted.drawn()
    bare = replace(study, settings=replace(study.settings, replicates=0), ensemble=None)
    assert not bare.has_intervals
    assert pull_of(study, {"gates": bare}).flows["width"].isna().all()


def test_what_cannot_be_compared_is_refused():
    study = counted.drawn()
    with refused("nothing-chosen"):
        pull_of(study, {})
    with refused("other-steps"):
        pull_of(study, {"gates": replace(study, step_minutes=15.0)})
    with refused("unknown-time"):
        pull_of(study, {"gates": study}, ["03:00"])


def test_nobody_who_moves_is_no_share():
    still = changed({(0, 0): (18.0, 16.0, 20.0, True)})
    found = pull_of(still, {"gates": still}, [MORNING]).flows.iloc[0]
    assert np.isnan(found["moved"])
    assert isinstance(found, pd.Series)
