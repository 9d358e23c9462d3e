import numpy as np
import pandas as pd
import pytest

from agg_core.io.counts import read_counts
from agg_core.made.counts import docomo_csv, simulate_city
from agg_core.study.heat import counted_profile, day_profile, local_dates, mean_counts

OUTSIDE = 2
COUNTS = pd.DataFrame(
    [
        ("2024-05-02 08:00", 0, 4),
        ("2024-05-01 08:00", 0, 3),
        ("2024-05-01 08:00", 1, 2),
        ("2024-05-01 08:00", OUTSIDE, 5),
        ("2024-05-01 20:30", 1, 7),
        ("2024-05-02 08:00", OUTSIDE, 2),
        ("2024-05-02 09:00", 1, 1),
    ],
    columns=["time", "cell", "count"],
).astype({"time": "datetime64[us]"})


def test_local_dates_in_order():
    assert local_dates(COUNTS) == ["2024-05-01", "2024-05-02"]
    assert local_dates(COUNTS.iloc[:0]) == []


def test_one_date():
    profile = day_profile(COUNTS, 2, "2024-05-01")
    assert profile.labels == ("08:00", "20:30")
    np.testing.assert_array_equal(profile.counts, [[3, 2], [0, 7]])
    np.testing.assert_array_equal(profile.outside, [5, 0])
    np.testing.assert_array_equal(profile.totals, [5, 7])
    assert profile.largest == 7


def test_mean_over_the_dates_that_have_data_at_a_time():
    profile = day_profile(COUNTS, 2)
    assert profile.labels == ("08:00", "09:00", "20:30")
    # Two dates have data at 08:00, one each at 09:00 and at 20:30.
    np.testing.assert_array_equal(profile.counts, [[3.5, 1.0], [0.0, 1.0], [0.0, 7.0]])
    np.testing.assert_array_equal(profile.outside, [3.5, 0.0, 0.0])


def test_a_date_on_which_all_are_outside_counts_as_a_date():
    counts = pd.DataFrame(
        {
            "time": pd.to_datetime(["2024-05-01 08:00", "2024-05-02 08:00"]),
            "cell": [0, OUTSIDE],
            "count": [6, 4],
        }
    )
    profile = day_profile(counts, 2)
    np.testing.assert_array_equal(profile.counts, [[3.0, 0.0]])
    np.testing.assert_array_equal(profile.outside, [2.0])


def test_outside_is_not_the_end_of_the_colour_scale():
    profile = day_profile(COUNTS.iloc[1:4], 2)
    assert profile.largest == 3
    empty_grid = day_profile(COUNTS.iloc[3:4], 2)
    assert empty_grid.largest == 1


@pytest.mark.parametrize("date", ["2023-01-01", None])
def test_nothing_to_show_is_an_empty_profile(date):
    counts = COUNTS if date else COUNTS.iloc[:0]
    profile = day_profile(counts, 2, date)
    assert profile.labels == ()
    assert profile.counts.shape == (0, 2)
    assert profile.outside.shape == (0,)
    assert profile.largest == 1


def test_counts_given_stay_as_they_are():
    before = COUNTS.copy()
    day_profile(COUNTS, 2)
    pd.testing.assert_frame_equal(COUNTS, before)


def test_suppressed_counts_are_no_reason_for_more_people_than_there_are():
    city = simulate_city(5, 5, 4, 900, random_state=3)
    table = read_counts(docomo_csv(city).encode())
    profile = counted_profile(table)
    assert profile.labels == table.slots
    low, high = profile.between.T
    assert (low <= 900).all()
    assert (high >= 900).all()
    known = np.where(city.counts >= 10, city.counts, 0).reshape(4, 24, 25)
    assert low == pytest.approx(known.sum(axis=2).mean(axis=0))
    assert high - low == pytest.approx(10 * (known == 0).sum(axis=2).mean(axis=0))
    assert (profile.totals >= low).all()
    assert (profile.totals <= high).all()
    # The mean of the published ones alone has more people than there are.
    number = np.maximum((known > 0).sum(axis=0), 1)
    assert (known.sum(axis=0) / number).sum(axis=1).max() > 905
    often = (city.counts >= 10).mean(axis=0) > 0.2
    alone = np.nanmean(table.counts[:, often], axis=0)
    true = city.counts.mean(axis=0)[often]
    found = mean_counts(table)[often]
    assert np.abs(found - true).sum() < np.abs(alone - true).sum() / 2


def test_what_was_not_measured_is_left_out_of_the_mean():
    rows = ["00:00,A,4", "01:00,A,", "02:00,A,8", "00:00,B,<5", "01:00,B,", "02:00,B,"]
    text = "\n".join(["time,cell,count", *(f"2024-01-01 {row}" for row in rows)])
    table = read_counts(text.encode())
    assert mean_counts(table)[0] == 6
    assert counted_profile(table).between.tolist() == [[4, 9], [0, 0], [8, 8]]
