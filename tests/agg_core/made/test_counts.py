"""The made-up city: people are conserved, moves are the truth, files say what publishers say."""

import io

import numpy as np
import pandas as pd
import pytest

from agg_core.made.counts import docomo_csv, mlit_csv, simulate_city
from tests.faults import refused


@pytest.fixture(scope="module")
def city():
    return simulate_city(4, 5, days=7, people=800, random_state=3)


def test_moves_lead_from_each_count_to_the_next(city):
    assert city.counts.shape == (168, 20)
    assert (city.counts.sum(axis=1) == 800).all()
    np.testing.assert_array_equal(city.moves.sum(axis=2), city.counts[:-1])
    np.testing.assert_array_equal(city.moves.sum(axis=1), city.counts[1:])


def test_chances_are_chances_and_moves_follow_them():
    city = simulate_city(2, 2, days=20, people=200_000, random_state=1)
    np.testing.assert_allclose(city.transition.sum(axis=2), 1)
    assert (city.transition >= 0).all()
    for hour in (3, 8, 12, 18):
        moves = city.moves[hour::24].sum(axis=0)
        shares = moves / moves.sum(axis=1, keepdims=True)
        assert np.abs(shares - city.transition[hour]).max() < 0.005


def test_people_go_in_by_day_and_home_at_night(city):
    middle = [i for i, code in enumerate(city.codes) if code[-2] in "12" and code[-1] in "123"]
    by_hour = city.counts[:, middle].sum(axis=1)
    hours = city.local.hour
    assert by_hour[hours == 11].min() > 1.5 * by_hour[hours == 4].max()


def test_a_seed_gives_the_same_city(city):
    again = simulate_city(4, 5, days=7, people=800, random_state=3)
    np.testing.assert_array_equal(again.moves, city.moves)
    other = simulate_city(4, 5, days=7, people=800, random_state=4)
    assert (other.moves != city.moves).any()


def test_sizes_that_make_no_city_are_refused():
    for wrong in ({"rows": 11}, {"cols": 0}, {"days": 0}, {"people": -1}):
        with refused("value-out-of-range"):
            simulate_city(**wrong)


def test_spatial_statistics_hold_what_is_large_enough(city):
    table = pd.read_csv(io.StringIO(docomo_csv(city)), dtype=str)
    assert list(table.columns) == [
        "date", "time", "area", "residence", "age", "gender", "population",
    ]  # fmt: skip
    assert len(table) == (city.counts >= 10).sum()
    assert table["population"].astype(int).sum() == city.counts[city.counts >= 10].sum()
    assert table["time"].str.len().eq(4).all()
    assert (table[["residence", "age", "gender"]] == "-1").all().all()
    with_sexes = pd.read_csv(io.StringIO(docomo_csv(city, 0, by_gender=True)))
    sums = with_sexes.groupby("gender")["population"].sum()
    assert sums[1] + sums[2] == sums[-1] == city.counts.sum()


def test_open_data_hold_means_of_periods_in_two_rows_where_cities_share_a_cell(city):
    table = pd.read_csv(io.StringIO(mlit_csv(city, 0)), dtype={"mesh1kmid": str})
    local = city.local
    weekday_nights = (local.day_of_week < 5) & local.hour.isin([1, 2, 3, 4])
    wanted = np.round(city.counts[weekday_nights].mean(axis=0)).astype(int)
    rows = table[(table["dayflag"] == 1) & (table["timezone"] == 1)]
    by_mesh = rows.groupby("mesh1kmid")["population"].sum()
    assert by_mesh[list(city.codes)].tolist() == wanted.tolist()
    assert rows["mesh1kmid"].value_counts().loc[list(city.codes[::5])].eq(2).all()
    assert set(table["dayflag"]) == set(table["timezone"]) == {0, 1, 2}
    assert (pd.read_csv(io.StringIO(mlit_csv(city)))["population"] >= 10).all()
