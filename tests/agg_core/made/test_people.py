from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from agg_core.made import people as synthetic
from agg_core.made.people import commuter_day, random_gaussian_hmm, random_hmm, sample_sequences
from tests.faults import refused

PEOPLE = 49_538
WEST, SOUTH, EAST, NORTH, ROWS, COLS = 139.28, 35.36, 140.24, 36.06, 14, 16
CELLS = ROWS * COLS


@pytest.fixture(scope="module")
def day():
    return commuter_day(PEOPLE, random_state=0)


@pytest.fixture(scope="module")
def cells(day):
    """Cell of each person at each half hour (n, 48), -1 outside, counted by hand."""
    col = np.floor((day["lon"].to_numpy() - WEST) / (EAST - WEST) * COLS).astype(int)
    row = np.floor((day["lat"].to_numpy() - SOUTH) / (NORTH - SOUTH) * ROWS).astype(int)
    inside = (col >= 0) & (col < COLS) & (row >= 0) & (row < ROWS)
    return np.where(inside, row * COLS + col, -1).reshape(PEOPLE, 48)


def flows(cells, hour):
    """People per half hour between different cells, the mean over two steps from the hour."""
    total = np.zeros((CELLS, CELLS))
    for step in (2 * hour, 2 * hour + 1):
        origin, dest = cells[:, step], cells[:, step + 1]
        known = (origin >= 0) & (dest >= 0) & (origin != dest)
        np.add.at(total, (origin[known], dest[known]), 0.5)
    return total


def test_table_has_the_columns_of_a_trajectory_table(day):
    assert list(day.columns) == ["user_id", "time", "lon", "lat"]
    assert len(day) == PEOPLE * 48
    assert isinstance(day["user_id"].dtype, pd.StringDtype)
    assert str(day["time"].dt.tz) == "UTC"
    assert day["user_id"].nunique() == PEOPLE
    assert not day.isna().to_numpy().any()
    local = day["time"].iloc[:48].dt.tz_convert("Asia/Tokyo")
    expected = pd.date_range("2025-06-11", periods=48, freq="30min", tz="Asia/Tokyo")
    assert (local.to_numpy() == expected.to_numpy()).all()
    assert local.iloc[0].day_of_week < 5


def test_same_seed_same_table_other_seed_another():
    first = commuter_day(400, random_state=7)
    pd.testing.assert_frame_equal(first, commuter_day(400, random_state=7), check_exact=True)
    pd.testing.assert_frame_equal(
        first, commuter_day(400, random_state=np.random.default_rng(7)), check_exact=True
    )
    assert not first["lon"].equals(commuter_day(400, random_state=8)["lon"])


def test_finer_steps_visit_the_same_homes():
    coarse = commuter_day(50, random_state=3).set_index(["user_id", "time"])
    fine = commuter_day(50, random_state=3, step_minutes=5).set_index(["user_id", "time"])
    assert len(fine) == 50 * 288
    both = fine.loc[coarse.index]
    # Positions at rest are the same to the digit; those on the way carry their own error.
    assert (both == coarse).all(axis=1).mean() > 0.8
    assert (both - coarse).abs().to_numpy().max() < 0.01


@pytest.mark.parametrize("people", [1, 2])
def test_a_handful_of_people_is_enough(people):
    assert len(commuter_day(people, random_state=0)) == people * 48


@pytest.mark.parametrize(
    ("choices", "code", "told"),
    [
        ({"n_people": 0}, "value-out-of-range", "n_people"),
        ({"n_people": 2.5}, "value-out-of-range", "n_people"),
        ({"step_minutes": 0}, "value-out-of-range", "step_minutes"),
        ({"step_minutes": 1441}, "value-out-of-range", "step_minutes"),
    ],
)
def test_bad_sizes_are_refused(choices, code, told):
    with refused(code, told):
        commuter_day(**{"n_people": 10, **choices})


def test_nearly_everybody_lives_in_the_study_area(day, cells):
    assert 0.005 < (cells < 0).mean() < 0.05
    assert day["lon"].between(139.0, 140.5).all()
    assert day["lat"].between(35.1, 36.3).all()


@pytest.mark.parametrize(
    ("hour", "fewest", "most"), [(2, 0, 15), (8, 85, 300), (14, 15, 100), (20, 25, 150)]
)
def test_number_of_arrows(cells, hour, fewest, most):
    assert fewest <= (flows(cells, hour) > 35).sum() <= most


def test_arrows_rank_night_afternoon_evening_morning(cells):
    night, morning, afternoon, evening = (
        (flows(cells, hour) > 35).sum() for hour in (2, 8, 14, 20)
    )
    assert night < afternoon < evening < morning


@pytest.mark.parametrize(
    ("hour", "least", "most"), [(2, 0.01, 0.025), (8, 0.20, 0.36), (14, 0.05, 0.15)]
)
def test_share_of_people_who_change_cell_in_half_an_hour(cells, hour, least, most):
    assert least < flows(cells, hour).sum() / PEOPLE < most


def test_central_cells_fill_by_day(cells):
    night = np.bincount(cells[:, 6][cells[:, 6] >= 0], minlength=CELLS)
    day = np.bincount(cells[:, 28][cells[:, 28] >= 0], minlength=CELLS)
    busiest = np.argsort(-day)[:2]
    ratio = day[busiest] / night[busiest]
    assert (ratio > 2).all()
    assert (ratio < 4.5).all()
    tokyo_station = int((35.681 - SOUTH) / 0.05) * COLS + int((139.767 - WEST) / 0.06)
    assert tokyo_station in busiest


def test_morning_flows_to_the_centre_return_in_the_evening(cells):
    centre = int((35.681 - SOUTH) / 0.05) * COLS + int((139.767 - WEST) / 0.06)
    morning, evening = flows(cells, 8), flows(cells, 19)
    assert morning[:, centre].sum() > 2 * morning[centre].sum()
    assert evening[centre].sum() > 1.5 * evening[:, centre].sum()


def test_nobody_travels_faster_than_the_stated_trains(day):
    lon = day["lon"].to_numpy().reshape(PEOPLE, 48)
    lat = day["lat"].to_numpy().reshape(PEOPLE, 48)
    km = np.hypot(np.diff(lon) * 90.6, np.diff(lat) * 111.0)
    fastest = max(float(line.split()[0]) for line in synthetic.LINES.strip().split("\n"))
    assert km.max() < synthetic.PACE * fastest * 0.5 + 1
    assert (km == 0).mean() > 0.75


def test_most_people_sleep_where_the_day_began(day):
    lon = day["lon"].to_numpy().reshape(PEOPLE, 48)
    assert (lon[:, 12] == lon[:, 47]).mean() > 0.85


def test_gravity_keeps_both_totals():
    city = synthetic._city()
    flows = synthetic._gravity(city, np.exp(-city.minutes / 30))
    np.testing.assert_allclose(flows.sum(axis=1), city.residents, rtol=1e-2)
    jobs = city.jobs / city.jobs.sum() * city.residents.sum()
    np.testing.assert_allclose(flows.sum(axis=0), jobs, rtol=1e-9)


def test_water_is_told_from_land():
    places = np.array([[139.85, 35.55], [139.3, 35.2], [139.767, 35.681], [140.113, 35.613]])
    np.testing.assert_array_equal(synthetic._in_water(places), [True, True, False, False])
    city = synthetic._city()
    assert not synthetic._in_water(city.lonlat).any()


def test_ways_add_up_along_the_line():
    city = synthetic._city()
    names = [line.split()[0] for line in synthetic.PLACES.strip().split("\n")]
    mitaka, nakano, shinjuku = (names.index(name) for name in ("Mitaka", "Nakano", "Shinjuku"))
    there = city.minutes[mitaka]
    assert there[shinjuku] == pytest.approx(there[nakano] + city.minutes[nakano, shinjuku])
    # 13 km by the Chuo line, at 48 km/h slowed by waits and changes
    assert 30 < there[shinjuku] < 45
    assert np.isfinite(city.minutes).all()
    np.testing.assert_allclose(city.minutes, city.minutes.T)


# ---------------------------------------------------------------- the paper's models


@pytest.mark.parametrize(("d", "symbols"), [(1, None), (3, None), (10, None), (4, 7), (7, 4)])
def test_random_hmm_holds_distributions(d, symbols):
    startprob, transmat, emissionprob = random_hmm(d, symbols, random_state=1)
    assert transmat.shape == (d, d)
    assert emissionprob.shape == (d, symbols or d)
    assert startprob.sum() == pytest.approx(1, abs=1e-12)
    for matrix in (transmat, emissionprob):
        np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-12)
        assert (matrix > 0).all()


@pytest.mark.parametrize("d", [3, 5, 10])
def test_random_hmm_is_a_row_permutation_of_a_near_identity(d):
    """Before division a row is 1 at its own column plus entries in 0.05 sqrt(d) [1/e, e]."""
    low, high = 0.05 * np.sqrt(d) * np.exp([-1.0, 1.0])
    orders = set()
    for seed in range(20):
        _, transmat, emissionprob = random_hmm(d, random_state=seed)
        for matrix in (transmat, emissionprob):
            order = matrix.argmax(axis=1)
            assert sorted(order) == list(range(d))
            orders.add(tuple(order))
            own = matrix[np.arange(d), order]
            assert (own >= (1 + low) / (1 + low + (d - 1) * high) - 1e-12).all()
            assert (own <= (1 + high) / (1 + high + (d - 1) * low) + 1e-12).all()
            others = matrix[matrix < own[:, None]].reshape(d, d - 1)
            assert (others.max(axis=1) / others.min(axis=1) <= np.exp(2) + 1e-9).all()
        assert not np.allclose(transmat, emissionprob)
    assert len(orders) > 4


def test_random_hmm_start_is_uniform_on_the_simplex():
    starts = np.array([random_hmm(3, random_state=seed)[0] for seed in range(2000)])
    # One component of Dirichlet(1, 1, 1) is Beta(1, 2): mean 1/3, variance 1/18.
    np.testing.assert_allclose(starts.mean(axis=0), 1 / 3, atol=5 * np.sqrt(1 / 18 / 2000))
    np.testing.assert_allclose(starts.var(axis=0), 1 / 18, rtol=0.15)


def test_random_hmm_repeats_and_refuses():
    for one, other in zip(
        random_hmm(4, random_state=5), random_hmm(4, random_state=5), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    with refused("value-out-of-range", "1 state"):
        random_hmm(0)


def test_random_gaussian_hmm_draws_means_and_variances_from_their_ranges():
    models = [random_gaussian_hmm(4, random_state=seed) for seed in range(500)]
    means = np.array([model[2] for model in models])
    variances = np.array([model[3] for model in models])
    assert means.shape == variances.shape == (500, 4, 1)
    # Uniform on [-20, 20] and on [1, 5]: standard deviations 40 / sqrt(12) and 4 / sqrt(12).
    assert (np.abs(means) <= 20).all()
    assert np.abs(means).max() > 19.5
    assert ((variances >= 1) & (variances <= 5)).all()
    assert np.ptp(variances) > 3.9
    assert means.std() == pytest.approx(40 / np.sqrt(12), rel=0.05)
    assert variances.std() == pytest.approx(4 / np.sqrt(12), rel=0.05)


def test_random_gaussian_hmm_has_the_chain_of_the_discrete_one_and_refuses():
    for one, other in zip(
        random_gaussian_hmm(5, 3)[:2], random_hmm(5, random_state=3), strict=False
    ):
        np.testing.assert_array_equal(one, other)
    with refused("value-out-of-range", "1 state"):
        random_gaussian_hmm(0)


def test_sample_sequences_follow_the_exact_distribution():
    startprob, transmat, _ = random_hmm(3, random_state=2)
    n, length = 60_000, 3
    sequences = sample_sequences(startprob, transmat, n, length, random_state=11)
    assert sequences.shape == (n, length)
    assert np.issubdtype(sequences.dtype, np.integer)
    for a, b, c in itertools.product(range(3), repeat=3):
        exact = startprob[a] * transmat[a, b] * transmat[b, c]
        seen = (sequences == (a, b, c)).all(axis=1).mean()
        assert abs(seen - exact) < 5 * np.sqrt(exact * (1 - exact) / n)


def test_sample_sequences_keep_structural_zeros():
    sequences = sample_sequences([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]], 4, 5, random_state=0)
    np.testing.assert_array_equal(sequences, np.tile([0, 1, 0, 1, 0], (4, 1)))


@pytest.mark.parametrize(
    ("startprob", "transmat", "n", "length", "code", "told"),
    [
        ([0.5, 0.6], np.eye(2), 1, 1, "sum-not-one", "startprob"),
        ([0.5, 0.5], np.eye(3), 1, 1, "wrong-shape", "2 x 2"),
        ([0.5, 0.5], np.eye(2), -1, 1, "value-out-of-range", "0"),
        ([0.5, 0.5], np.eye(2), 1, 0, "value-out-of-range", "length"),
    ],
)
def test_sample_sequences_refuse_bad_input(startprob, transmat, n, length, code, told):
    with refused(code, told):
        sample_sequences(startprob, transmat, n, length)


def test_public_names():
    assert all(hasattr(synthetic, name) for name in synthetic.__all__)
