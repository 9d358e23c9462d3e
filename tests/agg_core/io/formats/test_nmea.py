"""Sentences of receivers, with the example that everybody shows of them."""

import pytest

from agg_core.io import read_trajectories
from tests.faults import refused

RMC = "$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6A\r\n"
GGA = "$GPGGA,123520,3351.533,S,15112.558,E,1,08,0.9,545.4,M,46.9,M,,\r\n"


def test_places_and_times_of_sentences():
    void = RMC.replace(",A,", ",V,").replace("*6A", "")
    report = read_trajectories((RMC + GGA + void + "$GPGSV,3,1,11\r\n").encode())
    table = report.table
    assert table["time"].astype(str).tolist() == [
        "1994-03-23 12:35:19+00:00", "1994-03-23 12:35:20+00:00",
    ]  # fmt: skip
    assert table["lon"].tolist() == pytest.approx([11 + 31 / 60, 151 + 12.558 / 60])
    assert table["lat"].tolist() == pytest.approx([48 + 7.038 / 60, -(33 + 51.533 / 60)])
    assert report.report.rows_read == 4
    assert sum(rows.count for rows in report.report.set_aside.values()) == 2


def test_a_damaged_sentence_is_set_aside():
    damaged = RMC.replace("4807", "4907")
    report = read_trajectories((RMC + damaged).encode()).report
    assert report.set_aside["damaged sentence"].count == 1


def test_sentences_without_a_date_are_no_fixes():
    with refused("no-points"):
        read_trajectories((GGA + GGA).encode())
