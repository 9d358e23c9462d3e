import numpy as np
import pandas as pd
import pytest

from agg_core.io import read_trajectories
from agg_core.study import suggest
from agg_core.study.suggest import suggest_grid, suggest_window
from tests.agg_core import tiny


def places(lon, lat):
    """One person who is at one place after the other, every ten minutes."""
    return read_trajectories(
        pd.DataFrame(
            {
                "user_id": "a",
                "time": pd.date_range("2024-05-01T00:00Z", periods=len(lon), freq="10min"),
                "lon": np.asarray(lon, dtype=float),
                "lat": np.asarray(lat, dtype=float),
            }
        )
    )


def fixes(gap_min, first_hour=0, last_hour=24, n_people=20, jitter_s=60, lost=0.0, tz="UTC"):
    """People who report every ``gap_min`` minutes, a little early or late, some reports lost."""
    rng = np.random.default_rng(3)
    minutes = np.arange(first_hour * 60 + 2, last_hour * 60 - 2, gap_min)
    late = rng.uniform(-jitter_s, jitter_s, (n_people, len(minutes)))
    kept = rng.random(late.shape) >= lost
    person, at = np.nonzero(kept)
    seconds = minutes[at] * 60 + late[kept]
    table = pd.DataFrame(
        {
            "user_id": [f"p{i}" for i in person],
            "time": (
                pd.Timestamp("2024-05-01") + pd.to_timedelta(seconds.round(), unit="s")
            ).strftime("%Y-%m-%d %H:%M:%S"),
            "lon": 139.7,
            "lat": 35.6,
        }
    )
    return read_trajectories(table, tz=tz)


# ---------------------------------------------------------------- extent


def test_the_extent_holds_nearly_all_and_no_stray_fix_stretches_it():
    rng = np.random.default_rng(0)
    lon, lat = rng.uniform(139.3, 140.2, 2000), rng.uniform(35.4, 36.0, 2000)
    lon[:8], lat[8:16] = 10.0, -60.0
    grid = suggest_grid(places(lon, lat))
    assert ((lon >= grid.west) & (lon <= grid.east)).mean() >= 0.98
    assert ((lat >= grid.south) & (lat <= grid.north)).mean() >= 0.98
    assert 139.1 <= grid.west <= 139.31
    assert 140.19 <= grid.east <= 140.4
    assert 35.2 <= grid.south <= 35.41
    assert 35.99 <= grid.north <= 36.2
    assert (grid.rows, grid.cols) == (14, 16)


def test_cells_as_asked():
    grid = suggest_grid(places([1.0, 2.0], [3.0, 4.0]), rows=5, cols=6)
    assert (grid.rows, grid.cols) == (5, 6)


@pytest.mark.parametrize(
    ("lon", "lat"),
    [
        ([139.7] * 3, [35.6] * 3),
        ([-74.05], [40.72]),
        ([179.9999, 180.0, 180.0], [89.9, 90.0, 90.0]),
        ([-180.0, -180.0, -179.9], [-90.0, -90.0, -89.0]),
        ([-180.0, 0.5, 180.0], [-90.0, 0.5, 90.0]),
        ([139.70001, 139.70002], [35.60001, 35.60002]),
    ],
    ids=["one place", "one fix", "corner of the map", "other corner", "the globe", "a metre"],
)
def test_every_extent_is_a_grid_on_the_globe_that_holds_the_places(lon, lat):
    grid = suggest_grid(places(lon, lat)).make()
    assert (grid.assign(lon, lat) >= 0).all()


def test_a_sample_of_many_places_tells_nearly_the_same_extent(monkeypatch):
    rng = np.random.default_rng(0)
    lon, lat = rng.normal(2.3, 0.1, 100_000), rng.normal(48.8, 0.1, 100_000)
    monkeypatch.setattr(suggest, "MOST_PLACES", 5_000)
    sample = suggest.PlaceSample()
    for part in np.split(np.arange(len(lon)), [3, 4, 50_001, 50_001, 99_000]):
        sample.add(lon[part], lat[part])
    assert 2_500 <= len(sample.lon) <= 5_000
    # Every 32nd place, from the first on.
    np.testing.assert_array_equal(sample.lon, lon[::32])
    np.testing.assert_array_equal(sample.lat, lat[::32])
    whole = suggest.suggest_extent(lon, lat)
    assert suggest.suggest_extent(sample.lon, sample.lat) == pytest.approx(whole, abs=0.05)


# ---------------------------------------------------------------- step and times of day


@pytest.mark.parametrize(
    ("gap_min", "step"), [(5, 5), (20, 20), (30, 30), (7, 10), (25, 30), (60, 60), (100, 120)]
)
def test_step_of_regular_reports_with_jitter(gap_min, step):
    assert suggest_window(fixes(gap_min)).step_minutes == step


@pytest.mark.parametrize("gap_min", [5, 20, 30])
def test_a_few_lost_reports_do_not_lengthen_the_step(gap_min):
    assert suggest_window(fixes(gap_min, lost=0.1)).step_minutes == gap_min


def test_nights_between_people_are_no_gaps():
    one_each = pd.DataFrame(
        {
            "user_id": ["a", "b", "c"],
            "time": pd.to_datetime(["2024-05-01", "2024-05-02", "2024-05-03"], utc=True),
            "lon": 139.7,
            "lat": 35.6,
        }
    )
    assert suggest_window(read_trajectories(one_each)).step_minutes == 30


def test_dense_tracks_and_rare_reports_stay_within_the_steps_there_are():
    assert suggest_window(fixes(1, 9, 10, jitter_s=0)).step_minutes == 5
    rare = places([1.0, 1.0], [2.0, 2.0]).table.assign(
        time=pd.to_datetime(["2024-05-01", "2024-05-09"], utc=True)
    )
    assert suggest_window(read_trajectories(rare)).step_minutes == 1440


@pytest.mark.parametrize(
    ("hours", "times"),
    [
        ((0, 24), ("02:00", "08:00", "14:00", "20:00")),
        ((7, 22), ("08:00", "14:00", "20:00")),
        ((9, 19), ("14:00",)),
        ((10, 12), ()),
    ],
)
def test_times_only_where_there_is_data(hours, times):
    assert suggest_window(fixes(20, *hours)).times == times


def test_times_are_times_on_the_local_clock():
    tokyo = suggest_window(fixes(20, 7, 16, tz="Asia/Tokyo"))
    assert tokyo.times == ("08:00", "14:00")


def test_what_is_suggested_can_be_learned():
    trajectories = tiny.people()
    window = suggest_window(trajectories)
    assert window.step_minutes == 60
    grid = suggest_grid(trajectories, rows=3, cols=3)
    _, result = tiny.run(trajectories, tiny.settings(window, grid, iterations=1))
    assert result.n_individuals == tiny.N_PEOPLE
    assert [a.time for a in result.by_time] == ["02:00", "08:00", "14:00", "20:00"]


def test_tokyo_reports_every_twenty_minutes(shared_data):
    tokyo = read_trajectories(shared_data / "tokyo_people_flow" / "tokyo_1000users_20min.csv")
    window = suggest_window(tokyo)
    assert window.step_minutes == 20
    assert window.times == ("14:00",)  # the file begins at 09:00 and ends before 19:00
    grid = suggest_grid(tokyo)
    assert (tokyo.table["lon"].between(grid.west, grid.east)).mean() >= 0.98
    assert (tokyo.table["lat"].between(grid.south, grid.north)).mean() >= 0.98
