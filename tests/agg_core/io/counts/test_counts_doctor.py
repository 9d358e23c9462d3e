"""What the doctor of counts says: totals, gaps, cells never known, the clock."""

import numpy as np
import pytest

from agg_core.io.counts import CountReport, read_counts
from agg_core.made.counts import docomo_csv, simulate_city


def remarks(*rows, header="time,cell,count", **choices):
    return read_counts("\n".join([header, *rows]).encode(), **choices).report.remarks


def hourly(counts_by_cell, day="2024-01-01"):
    return [
        f"{day} {hour:02d}:00,{cell},{count}"
        for cell, counts in counts_by_cell.items()
        for hour, count in enumerate(counts)
    ]


def test_totals_that_balance():
    text = remarks(*hourly({"A": [5, 3, 1], "B": [0, 2, 4]}))["totals"]
    assert text == "The published counts of a day add up to the same total at every moment."


def test_totals_that_differ_with_nothing_suppressed():
    text = remarks(*hourly({"A": [50, 30, 20], "B": [50, 60, 60]}))["totals"]
    # 100, 90, 80.
    assert "differ by up to 20 (20.0%): most at 2024-01-01 00:00, fewest at 2024-01-01 02:00" in (
        text
    )
    assert "nothing is suppressed" in text


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        # 100, then 92 and one cell below 10: all can be there.
        ({"A": [50, 92], "B": [50, "<10"]}, "can explain all of it"),
        # 100, then 70 and one cell below 10: 20 cannot.
        ({"A": [50, 70], "B": [50, "<10"]}, "can explain 10 of these, and 20 people at least"),
        # A cell that was not measured at a moment is left out of both.
        ({"A": [50, 50], "B": [50, ""], "C": [5, "<10"]}, "can explain all of it"),
    ],
)
def test_how_much_of_it_suppressed_counts_explain(counts, said):
    assert said in remarks(*hourly(counts))["totals"]


def test_days_are_judged_one_by_one():
    rows = [*hourly({"A": [5] * 24}), *hourly({"A": [9] * 24}, "2024-01-02")]
    assert "same total at every moment" in remarks(*rows)["totals"]


def test_suppressed_counts_of_the_made_up_city_explain_its_totals():
    # Nobody comes or goes there, so that nothing may be left unexplained.
    for seed in range(5):
        city = simulate_city(people=1_500, days=2, random_state=seed)
        table = read_counts(docomo_csv(city).encode())
        assert table.n_suppressed > 100
        assert "can explain all of it" in table.report.remarks["totals"]


def test_kinds_are_counted():
    said = remarks("2024-01-01 00:00,A,0", "2024-01-01 00:00,B,<5", "2024-01-01 00:00,C,",
                   "2024-01-01 00:00,D,9")  # fmt: skip
    assert said["kinds"] == (
        "Of 4 counts 2 are published (1 of them zero), 1 are suppressed, being below 5 and 1 were "
        "not measured."
    )
    assert said["cells"] == "2 of 4 cells are never published: B, C."


def test_steps_gaps_and_moments_alone():
    rows = [f"2024-01-01 {hour:02d}:00,A,1" for hour in (0, 1, 2, 5, 6, 9)]
    assert remarks(*rows)["steps"] == (
        "6 moments in 3 unbroken runs of steps of 1 hour; 4 moments of these days have no row; of "
        "1 runs one moment is all, so that no move is seen."
    )
    assert remarks(*rows[:3])["steps"] == "3 moments, one every 1 hour, without a gap."
    tens = [f"2024-01-01 00:{minute:02d},A,1" for minute in (0, 10, 20)]
    assert "one every 10 minutes" in remarks(*tens)["steps"]


def test_a_clock_that_is_changed():
    rows = [f"2015-{day} {hour:02d}:00,A,5" for day in ("10-31", "11-01") for hour in range(24)]
    table = read_counts("\n".join(["time,cell,count", *rows]).encode(),
                        tz="America/New_York")  # fmt: skip
    assert "changed on 2015-11-01" in table.report.remarks["clock"]
    # The hour that the clock shows twice is of no one instant: a gap of two hours.
    assert table.report.set_aside["time shown twice by the clock of America/New_York"].count == 1
    assert np.bincount(table.sequence).tolist() == [25, 22]
    assert "clock" not in remarks(*rows[:24], tz="America/New_York")
    assert "clock" not in remarks(*rows, tz="Asia/Tokyo")


def test_a_report_goes_to_json_and_comes_back_and_is_text():
    report = read_counts(
        b"time,cell,count\n2024-01-01 00:00,A,-1\n2024-01-01 00:00,B,4\n2024-01-01 01:00,B,5\n"
    ).report
    assert CountReport.from_dict(report.to_dict()) == report
    text = report.to_text()
    assert "Rows read               3" in text
    assert "negative count        1 (2024-01-01 00:00, A, -1)" in text
    assert report.remarks["steps"] in text
