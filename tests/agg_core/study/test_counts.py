"""From a table of counts to flows: the whole way on small simulated cities, the truth known."""

import json
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest

from agg_core.counts import certainty, choosing, worlds
from agg_core.counts.choosing import DENSE, DRAWN, learn_flows
from agg_core.counts.erring import ErringPairs
from agg_core.counts.pairs import pairs_of
from agg_core.counts.rows import Strength
from agg_core.counts.state import FlowState
from agg_core.io.counts import read_counts
from agg_core.made.counts import docomo_csv, simulate_city
from agg_core.model.hmm import distance_decay_transmat
from agg_core.space.settings import MeshSettings
from agg_core.study import counts as count_study
from agg_core.study.counts import (
    USUAL,
    CountProgress,
    CountStudy,
    check_identifiable,
    count_study_steps,
    move_shape,
)
from agg_core.study.result import WHOLE_DAY
from agg_core.study.settings import CountLearnSettings
from agg_core.tables.counts import MISSING, SUPPRESSED
from tests.agg_core import counted
from tests.agg_core.counts import made
from tests.faults import refused

QUICK = CountLearnSettings(strength="given", prior=20.0, time="one", replicates=2)


def run(table, settings=QUICK):
    *progress, study = count_study_steps(table, settings)
    assert isinstance(study, CountStudy)
    assert all(isinstance(step, CountProgress) for step in progress)
    return progress, study


def wide(flows, d):
    """Rows of flows as a matrix (d, d)."""
    matrix = np.zeros((d, d))
    matrix[flows["origin"], flows["dest"]] = flows["count"]
    return matrix


@pytest.fixture(scope="module")
def few():
    """60 people in 4 x 4 cells on three days: everything is chosen on days kept aside."""
    city = simulate_city(4, 4, days=3, people=60, random_state=2)
    return city, *run(made.city_table(city), CountLearnSettings(replicates=2))


@pytest.fixture(scope="module")
def many():
    """800 people in 4 x 4 cells on three days, as quickly as can be."""
    city = simulate_city(4, 4, days=3, people=800, random_state=2)
    return city, *run(made.city_table(city))


@pytest.fixture(scope="module")
def small():
    """Six cells, two days."""
    return made.city_table(simulate_city(2, 3, days=2, people=300, random_state=3))


# ------------------------------------------------------------------------------------ the whole way


def test_what_it_says_of_the_counts(few):
    city, _, study = few
    assert (study.n_cells, study.cells, study.has_outside) == (16, city.codes, False)
    assert (study.n_pairs, study.n_days, study.n_left_out, study.n_filled) == (71, 3, 0, 0)
    assert len(study.slots) == 24
    assert study.grid == MeshSettings(codes=city.codes)
    assert study.wall_s > 0


def test_people_of_an_average_day(few):
    city, _, study = few
    for hour in (0, 8, 22):
        np.testing.assert_allclose(study.people[hour], city.counts[hour::24][:3].mean(axis=0))
    np.testing.assert_allclose(study.people[23], city.counts[[23, 47]].mean(axis=0))


def test_few_people_are_drawn_and_many_are_not(few, many):
    assert few[2].learner == DRAWN
    assert "few people" in few[2].choice
    assert many[2].learner == DENSE
    assert "many people" in many[2].choice


@pytest.mark.parametrize(
    ("minutes", "name"),
    [(None, "step"), (1, "minute"), (30, "30 minutes"), (90, "90 minutes"), (60, "hour"),
     (180, "3 hours"), (1440, "day"), (10080, "7 days"), (0.5, "0.5 minutes")],
)  # fmt: skip
def test_the_length_of_a_step_has_a_name(minutes, name):
    assert replace(counted.study(), step_minutes=minutes).step_name == name


def test_a_city_counted_every_hour_has_flows_per_hour(few):
    *_, study = few
    assert (study.step_minutes, study.step_name) == (60, "hour")


@pytest.mark.parametrize("which", ["few", "many"])
def test_progress_rises_from_nothing_to_all(which, request):
    _, progress, _ = request.getfixturevalue(which)
    shares = [step.share for step in progress]
    assert 0 <= shares[0] < 0.2
    assert shares == sorted(shares)
    assert shares[-1] == 1
    stages = list(dict.fromkeys(step.stage for step in progress))
    assert stages == ["choosing", "learning", "validating", "drawing", "doubting"]
    assert progress[-1].message == "simulated world 2 of 2"


def test_a_strength_between_the_best_ones_is_chosen(few):
    candidates = few[2].candidates
    assert candidates["chosen"].sum() == 1
    chosen = candidates.loc[candidates["chosen"]].iloc[0]
    best = candidates.loc[candidates["score"].idxmax()]
    assert np.isnan(chosen["own"]) == np.isnan(best["own"])
    assert chosen["day_types"] == best["day_types"]
    alike = candidates.loc[candidates["hours"].notna()]
    layers = ("prior", "hours") if np.isnan(chosen["own"]) else ("prior", "hours", "own")
    for layer in layers:
        assert alike[layer].min() <= chosen[layer] <= alike[layer].max()
    assert candidates["prior"].iloc[:4].tolist() == [0, 5, 20, 100]
    # People of this city go in by day and out at night.
    assert not np.isnan(chosen["hours"])
    assert few[2].transmats.shape == (24, 16, 16)


def test_flows_of_a_time_are_people_times_chances(few):
    _, _, study = few
    assert sorted(study.flows["slot"].unique()) == list(range(24))
    for slot in (0, 8, 18):
        flows = study.flows[study.flows["slot"] == slot]
        expected = study.people[slot][:, None] * study.transmats[slot]
        np.testing.assert_allclose(wide(flows, 16), expected, atol=0.005)
        assert wide(flows, 16).sum() == pytest.approx(60, abs=0.5)


def test_the_mean_step_weighs_times_by_their_pairs(few):
    _, _, study = few
    steps = np.array([3] * 23 + [2])
    expected = (steps[:, None, None] * study.people[:, :, None] * study.transmats).sum(axis=0) / 71
    np.testing.assert_allclose(wide(study.day_flows, 16), expected, atol=0.005)


@pytest.mark.parametrize("which", ["few", "many"])
def test_intervals_are_in_order_and_resolved_flows_are_narrow(which, request):
    _, _, study = request.getfixturevalue(which)
    for flows in (study.flows, study.day_flows):
        assert flows["low"].min() >= 0
        assert (flows["low"] <= flows["high"]).all()
        narrow = (flows["high"] - flows["low"]) / 2 < flows["count"]
        np.testing.assert_array_equal(flows["resolved"], narrow)
        assert flows["resolved"].any()
        assert not flows["resolved"].all()


def test_what_is_learned_foretells_better_than_staying_or_gravity(few):
    held_out = few[2].held_out.set_index("method")
    assert held_out.index.tolist() == ["learned", "persistence", "gravity"]
    # Means are predicted, which are best by squares; where most cells keep their one or two people,
    # staying has the smaller mean absolute error.
    assert held_out["rmse"].idxmin() == "learned"
    assert held_out.loc["learned", "score"] > held_out.loc["gravity", "score"]
    assert np.isnan(held_out.loc["persistence", "score"])


def test_moves_come_nearer_to_the_truth_than_where_they_began(many):
    city, _, study = many
    found, truth = wide(study.day_flows, 16), city.moves.mean(axis=0)
    assert made.common_part(found, truth) > 0.55
    start = study.people.mean(axis=0)[:, None] * move_shape(made.city_table(city), outside=False)
    assert made.common_part(found, truth) > made.common_part(start, truth) + 0.05


def test_flows_have_the_places_of_both_ends(few):
    _, _, study = few
    day, morning = study.table(WHOLE_DAY), study.table(study.slots[8])
    assert len(day) == len(study.happened.day_flows)
    assert len(morning) == (study.happened.flows["slot"] == 8).sum()
    assert "slot" not in morning
    places = study.grid.make().centroids
    row = day.iloc[0]
    np.testing.assert_allclose(
        row[["dest_lon", "dest_lat"]].astype(float), places[int(row["dest"])]
    )


# -------------------------------------------------------------------------------------- the choices


def test_the_same_seed_gives_the_same(small):
    settings = CountLearnSettings(
        strength="given", prior=20.0, time="one", replicates=1, seed=5
    )  # fmt: skip
    (_, once), (_, again) = run(small, settings), run(small, settings)
    pd.testing.assert_frame_equal(once.flows, again.flows)
    pd.testing.assert_frame_equal(once.day_flows, again.day_flows)
    pd.testing.assert_frame_equal(once.candidates, again.candidates)
    np.testing.assert_array_equal(once.transmats, again.transmats)


@pytest.mark.parametrize("error", [0.0, 0.1])
def test_what_trials_found_is_not_tried_again(error, monkeypatch):
    city = simulate_city(2, 3, days=3, people=400, random_state=3)
    table = made.city_table(city)
    wrong = 1 + error * np.random.default_rng(0).standard_normal(table.counts.shape)
    table = replace(table, counts=np.rint(table.counts * wrong))
    _, once = run(table, CountLearnSettings(replicates=0))
    scored = []
    monkeypatch.setattr(choosing, "prediction_scores", lambda *_: scored.append(1))
    monkeypatch.setattr(count_study, "measuring_steps", None)
    known = json.loads(json.dumps(once.remembered))
    *_, again = count_study_steps(table, CountLearnSettings(replicates=1), known)
    assert not scored
    pd.testing.assert_frame_equal(once.candidates, again.candidates)
    np.testing.assert_array_equal(once.transmats, again.transmats)
    assert (once.count_error, once.count_error_high) == (again.count_error, again.count_error_high)
    assert once.held_out.equals(again.held_out)
    assert once.remembered == again.remembered


def test_of_other_counts_nothing_is_remembered(small):
    status = small.status.copy()
    status[3, 2] = SUPPRESSED
    counts = np.where(status == SUPPRESSED, np.nan, small.counts)
    hidden = replace(small, counts=counts, status=status, suppressed_below=5.0)
    missing = replace(hidden, status=np.where(status == SUPPRESSED, MISSING, status))
    turned = replace(small, counts=small.counts[:, ::-1])
    quick = replace(QUICK, replicates=0)
    for one, another in ((small, turned), (hidden, missing)):
        known = run(one, quick)[1].remembered
        *_, again = count_study_steps(another, quick, known)
        assert known
        assert not known.keys() & again.remembered.keys()


def test_a_given_prior_is_the_only_one(small):
    _, study = run(small, CountLearnSettings(strength="given", prior=7.0, time="one", replicates=0))
    assert study.candidates["prior"].tolist() == [7.0]
    assert study.transmats.shape == (1, 6, 6)


def test_by_time_is_done_when_it_is_asked_for():
    """People move alike all day: one matrix would do, but is not what was asked for."""
    truth = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])
    rng = np.random.default_rng(1)
    counts = [rng.multinomial(9000, np.full(3, 1 / 3))]
    for _ in range(23):
        counts.append(rng.multinomial(counts[-1], truth).sum(axis=0))
    table = made.table(counts, steps=4)
    settings = CountLearnSettings(strength="given", prior=20.0, time="by_time", replicates=0)
    _, study = run(table, settings)
    assert study.transmats.shape == (4, 3, 3)
    assert not np.isnan(study.candidates.loc[study.candidates["chosen"], "hours"].iloc[0])


def test_without_worlds_there_are_no_intervals(small):
    _, study = run(small, CountLearnSettings(strength="given", time="one", replicates=0))
    for flows in (study.flows, study.day_flows):
        assert flows[["low", "high"]].isna().all(axis=None)
        assert flows["resolved"].all()


# ------------------------------------------------------------------------------ what cannot be told


def test_without_a_prior_it_refuses_what_counts_do_not_fix():
    counts = np.random.default_rng(0).multinomial(50_000, np.full(224, 1 / 224), size=3)
    table = made.table(counts)
    settings = CountLearnSettings(strength="given", prior=0.0)
    with refused("flows-not-identified") as caught:
        next(iter(count_study_steps(table, settings)))
    told = str(caught.value)
    assert told == check_identifiable(table).refusal
    for words in ("do not fix the flows", "2 pairs", "need 224", "load more days", "larger cells"):
        assert words in told
    assert told.startswith("Without a prior")


def test_where_counts_fix_nothing_no_prior_is_no_candidate():
    city = simulate_city(4, 4, days=1, people=800, random_state=2)
    table = made.city_table(city).take([7, 8, 9])
    assert not check_identifiable(table).identified
    _, study = run(table, CountLearnSettings(time="one", replicates=0))
    assert study.candidates["prior"].min() > 0
    assert not study.identifiability.identified


def test_where_they_do_it_is_one(small):
    assert check_identifiable(small).identified
    _, study = run(small, CountLearnSettings(strength="given", prior=0.0, time="one", replicates=0))
    assert study.candidates["prior"].tolist() == [0.0]


def test_two_moments_are_too_few(small):
    with refused("too-few-moments"):
        list(count_study_steps(small.take([3, 4]), QUICK))


# -------------------------------------------------------------------------------- kinds of tables


def test_cells_without_a_place():
    city = simulate_city(2, 3, days=2, people=300, random_state=3)
    _, study = run(made.city_table(city, grid=False))
    assert study.grid is None
    assert study.cells == ("c0", "c1", "c2", "c3", "c4", "c5")
    rows = study.table(WHOLE_DAY)
    told = ["origin", "dest", "count", "low", "high", "resolved"]
    assert study.table(WHOLE_DAY, USUAL).columns.tolist() == told
    assert rows.columns.tolist() == [*told, "rhat", "n_eff"]
    assert rows["count"].is_monotonic_decreasing
    assert len(study.table(study.slots[8])) == (study.happened.flows["slot"] == 8).sum()


def test_people_who_come_and_go_are_outside():
    """One cell of the city is not counted: who is there is outside, and their moves are told."""
    city = simulate_city(2, 3, days=3, people=600, random_state=4)
    grid = MeshSettings(codes=city.codes[:5])
    counts = city.counts[:, :5]
    _, study = run(made.table(counts, zone="Asia/Tokyo", grid=grid))
    assert study.has_outside
    assert study.n_cells == 5
    assert study.transmats.shape == (1, 6, 6)
    np.testing.assert_allclose(study.people[8, :5], counts[8::24].mean(axis=0))
    assert {5} < set(study.day_flows["origin"])
    places = study.table(WHOLE_DAY).set_index(["origin", "dest"])
    assert np.isfinite(places.loc[(0, 1), "dest_lon"])


def test_a_file_as_it_is_delivered():
    city = simulate_city(3, 3, days=2, people=120, random_state=5)
    table = read_counts(docomo_csv(city).encode(), tz="Asia/Tokyo", filename="docomo.csv")
    _, study = run(table)
    assert study.cells == city.codes
    assert study.n_filled > 10
    assert study.n_pairs + study.n_left_out == 47
    assert study.grid is not None
    assert study.day_flows["count"].sum() == pytest.approx(120, rel=0.05)


def test_suppressed_counts_do_better_than_zeros():
    """Common part of moves with the truth: suppressed below 10, taken as zero, and published."""
    city = simulate_city(4, 4, days=4, people=300, random_state=1)
    truth = city.moves.sum(axis=0)

    def common_part(table):
        pairs = pairs_of(table)
        shape = move_shape(table, outside=pairs.has_outside)
        *_, last = learn_flows(pairs, shape, DENSE, Strength(20.0))
        flows = pairs.people.sum(axis=0)[:, None] * last.transmats[0]
        return made.common_part(flows[:16, :16], truth)

    hidden = common_part(made.city_table(city, below=10))
    zeros = common_part(made.city_table(city, below=10, as_zero=True))
    whole = common_part(made.city_table(city))
    assert 0.05 < (city.counts < 10).mean() < 0.5
    assert hidden > zeros + 0.05
    assert hidden > whole - 0.05


# ----------------------------------------------------------------------------- where moves begin


def test_moves_begin_by_distance(small):
    shape = move_shape(small, outside=True)
    np.testing.assert_array_equal(
        shape, distance_decay_transmat(small.grid.make(), 0.6, outside=True)
    )
    assert shape.shape == (7, 7)
    assert shape[0, 1] > shape[0, 2]


def test_without_places_all_moves_begin_alike():
    table = made.table([[1, 2, 3], [3, 2, 1]])
    np.testing.assert_allclose(move_shape(table, outside=False), 0.2 + 0.4 * np.eye(3))
    assert move_shape(table, outside=True).shape == (4, 4)
    assert move_shape(made.table([[1], [1]]), outside=False).tolist() == [[1.0]]


# ---------------------------------------------------------------- every setting, every learner

CROSSED = {
    "time": ("by_time", {"choosing", "learning", "moving", "doubting"}),
    "strength": ("auto", {"choosing", "learning", "moving", "doubting"}),
    "prior": (30.0, {"choosing", "learning", "moving", "doubting"}),
    "count_error": (0.1, {"choosing", "learning", "moving", "doubting"}),
    "expansion": (2.0, {"choosing", "learning", "moving", "doubting"}),
    "replicates": (3, {"doubting"}),
    "threshold": (9.0, set()),  # of arrows on a map: nobody learns by it
    "seed": (1, {"choosing", "learning", "moving", "doubting"}),
}
"""Another value of each setting than `QUICK` has, and the stages whose learning hangs on it."""


def learned_with(table, settings, monkeypatch):
    """Of each stage of a study: what its learner was asked, seeds and number of times too."""
    rooms = {
        "choosing": choosing, "learning": count_study, "moving": worlds, "doubting": certainty
    }  # fmt: skip
    asked = {stage: [] for stage in rooms}

    def watched(stage):
        def learn(pairs, shape, learner, strength, *, random_state, **_):
            stream = random_state.bit_generator.state["state"]["state"]
            error = pairs.error if isinstance(pairs, ErringPairs) else None
            asked[stage].append((learner, strength, (error, pairs.before.sum()), stream))
            yield FlowState(1, shape[None], 0.0)

        return learn

    with monkeypatch.context() as patched:
        for stage, room in rooms.items():
            patched.setattr(room, "learn_flows", watched(stage))
        run(table, settings)
    return asked


def test_every_setting_is_crossed():
    # Within a reach a study goes a way of its own (test_counts_reach.py), and days that are named
    # are of use where times of day are told apart (test_day_types.py).
    beside = ["reach_m", "holidays", "day_labels"]
    assert [*CROSSED, *beside] == [f.name for f in fields(CountLearnSettings)]


@pytest.mark.parametrize("name", CROSSED)
def test_a_setting_reaches_every_learner_that_it_bears_on(small, monkeypatch, name):
    value, reached = CROSSED[name]
    usual = learned_with(small, QUICK, monkeypatch)
    other = learned_with(small, replace(QUICK, **{name: value}), monkeypatch)
    if name != "seed":  # the stream goes on from where candidates left it
        usual, other = (
            {stage: [what[:3] for what in asked] for stage, asked in each.items()}
            for each in (usual, other)
        )
    assert {stage for stage in usual if usual[stage] != other[stage]} == reached


@pytest.mark.parametrize(("time", "strength"), [("one", "given"), ("by_time", "auto")])
def test_worlds_are_learned_from_as_the_real_counts_are(small, monkeypatch, time, strength):
    settings = replace(QUICK, time=time, strength=strength, count_error=0.1)
    asked = learned_with(small, settings, monkeypatch)
    ((*real, _),) = asked["learning"]
    assert real[2][0].relative == 0.1
    worlds = asked["doubting"]
    assert len(worlds) == settings.replicates
    # But for how tightly times of day are tied, which is not known.
    learner, tied = real[:2]
    assert {world[0] for world in worlds} == {learner}
    assert {replace(world[1], hours=tied.hours) for world in worlds} == {tied}
    assert {world[2][0] for world in worlds} == {real[2][0]}
    assert {world[:2] for world in asked["moving"]} == {(learner, tied)}
    assert {tried[2][0].relative for tried in (*asked["choosing"], *asked["moving"])} == {0.1}


def test_intervals_hold_true_flows_where_counts_err():
    """Counts err by 10 %, of which nobody tells: nine in ten are to be held."""
    city = simulate_city(4, 4, days=3, people=800, random_state=2)
    table = made.city_table(city)
    errors = np.random.default_rng(0).lognormal(0, 0.1, table.counts.shape)
    counted = replace(table, counts=np.rint(table.counts * errors))
    _, study = run(counted, CountLearnSettings())
    assert study.count_error == pytest.approx(0.1, rel=0.15)
    low, high, truth = np.zeros((17, 17)), np.zeros((17, 17)), np.zeros((17, 17))
    flows = study.day_flows
    low[flows["origin"], flows["dest"]] = study.n_pairs * flows["low"]
    high[flows["origin"], flows["dest"]] = study.n_pairs * flows["high"]
    truth[:16, :16] = city.moves.sum(axis=0)
    moves = (truth > 5) & ~np.eye(17, dtype=bool)
    held = (low - 0.5 <= truth) & (truth <= high + 0.5)
    assert moves.sum() > 200
    assert 0.85 < held[moves].mean() <= 1
