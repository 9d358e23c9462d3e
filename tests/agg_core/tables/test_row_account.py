"""What reports of every kind of table say of rows."""

import pandas as pd

from agg_core.base.report import Guess, SetAside
from agg_core.tables.report import ImportReport
from agg_core.tables.table_report import TableReport

ROWS = {
    "rows_read": 9,
    "rows_kept": 2,
    "set_aside": {"no origin": SetAside(7, (2, 3, 4, 5, 6), "count=1")},
    "guesses": {"time": Guess("day first", ("month first",), "it says both", "time_format")},
}


def test_reports_are_the_same_after_they_are_written():
    of_table = TableReport(**ROWS, figures={"trips": 2})
    assert TableReport.from_dict(of_table.to_dict()) == of_table
    moment = pd.Timestamp("2024-05-01", tz="UTC")
    of_people = ImportReport(
        individuals=1, fixes_per_individual=(2, 2.0, 2), first_utc=moment, last_utc=moment,
        bbox=(1.0, 2.0, 3.0, 4.0), timezone="UTC", **ROWS,
    )  # fmt: skip
    assert ImportReport.from_dict(of_people.to_dict()) == of_people


def test_all_reports_tell_rows_alike():
    moment = pd.Timestamp("2024-05-01", tz="UTC")
    of_people = ImportReport(
        individuals=1, fixes_per_individual=(2, 2.0, 2), first_utc=moment, last_utc=moment,
        bbox=(1.0, 2.0, 3.0, 4.0), timezone="UTC", **ROWS,
    ).to_text()  # fmt: skip
    shared = TableReport(**ROWS).to_text().splitlines()
    assert set(shared) <= set(of_people.splitlines())
    assert any("--time-format" in line for line in shared)
