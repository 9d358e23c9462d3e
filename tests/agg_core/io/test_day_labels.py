"""Tables of labelled days, written in many ways."""

import io

import pandas as pd
import pytest

from agg_core.io.day_labels import read_day_labels
from tests.faults import refused

MAY = (("2024-05-01", "strike"), ("2024-05-13", "match day"))


@pytest.mark.parametrize(
    "text",
    [
        "date,label\n2024-05-01,strike\n2024-05-13,match day\n",
        "label,date\nmatch  day,2024-05-13\nstrike,2024-05-01\n",
        "Datum;Art\n01.05.2024;strike\n13.05.2024;match day\n",
        "Date\tDay type\n2024/5/1\tstrike\n2024/5/13\tmatch day\n",
        "day,event,city\n01/05/2024,strike,X\n13/05/2024,match day,X\n",
        "date,label\n05/01/2024,strike\n05/13/2024,match day\n",
        "date,label\n20240501,strike\n20240513,match day\n",
        "20240501,strike\n20240513,match day\n",
        "date,label\n1 May 2024,strike\n13 May 2024,match day\n",
        "日付,種別\n2024年5月1日,strike\n2024年5月13日,match day\n",
        "when,what\n2024-05-01,strike\n2024-05-13,match day\n",
        "date,label\n2024-05-01,strike\n2024-05-02,\n,\n2024-05-13,match day\n",
        "date,label\n2024-05-01T00:00:00+09:00,strike\n2024-05-13T23:00:00+09:00,match day\n",
    ],
)
def test_dates_and_labels_are_found(text):
    assert read_day_labels(text.encode()) == MAY


@pytest.mark.parametrize(
    "text",
    [
        "start,end,label\n2024-07-30,2024-08-02,school holiday\n2024-08-10,,match\n",
        "name,from,to\nschool holiday,2024-07-30,2024-08-02\nmatch,2024-08-10,2024-08-10\n",
        "von;bis;Ferien\n30.07.2024;02.08.2024;school holiday\n10.08.2024;;match\n",
        # That 30 is a day tells the order of the other column, too.
        "start date,end date,event\n30/07/2024,02/08/2024,school holiday\n10/08/2024,,match\n",
        "date,until,label\n2024-07-30,2024-08-02,school holiday\n2024-08-10,2024-08-10,match\n",
    ],
)
def test_a_row_may_be_of_several_days(text):
    days = ["2024-07-30", "2024-07-31", "2024-08-01", "2024-08-02"]
    found = read_day_labels(text.encode())
    assert found == (*((day, "school holiday") for day in days), ("2024-08-10", "match"))


def test_a_workbook_and_parquet_are_tables_too():
    frame = pd.DataFrame(MAY, columns=["date", "label"]).astype({"date": "datetime64[us]"})
    assert read_day_labels(frame) == MAY
    for write in (frame.to_excel, frame.to_parquet):
        file = io.BytesIO()
        write(file, index=False)
        assert read_day_labels(file.getvalue(), "days") == MAY


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("date,label\n05/03/2024,a\n06/04/2024,b\n", "ambiguous-dates"),
        ("date,label\n01/02/24,a\n03/04/24,b\n", "ambiguous-dates"),
        ("foo,bar\n1,2\n", "column-not-found"),
        ("date,other,third\n2024-05-01,a,b\n", "column-not-found"),
        ("date,label\nsomeday,a\n2024-05-01,b\n", "day-label-without-date"),
        ("date,label\n2024-05-01,\n", "table-empty"),
        ("date,label\n2024-05-01,a\n2024-05-01,b\n", "day-labels-conflict"),
        ("start,end,label\n2024-05-01,2024-05-03,a\n2024-05-02,,b\n", "day-labels-conflict"),
        ("start,end,label\n2024-05-03,2024-05-01,a\n", "day-label-without-end"),
        ("start,end,label\n1990-05-03,2024-05-01,a\n", "day-label-without-end"),
        ("start,end,label\n2024-05-03,someday,a\n", "day-label-without-end"),
        ("start,end,label\n,2024-05-01,a\n", "day-label-without-date"),
    ],
)
def test_what_cannot_be_read_in_one_way_is_refused(text, code):
    with refused(code):
        read_day_labels(text.encode())


def test_a_date_that_is_the_same_in_both_orders_is_known():
    assert read_day_labels(b"date,label\n05/05/2024,a\n") == (("2024-05-05", "a"),)
