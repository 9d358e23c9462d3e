"""Files of counts with damage of every sort: a table whose account adds up, or one sentence."""

import json
import time

import numpy as np
import pytest

from agg_core.base.errors import InputError
from agg_core.io.counts import CountReport, read_counts
from agg_core.made.counts import docomo_csv, mlit_csv, simulate_city
from tests.agg_core.io.fuzz import damaged

CITY = simulate_city(3, 3, 2, 300)
HOURS = [f"2024-01-0{day} {hour:02d}:00" for day in (1, 2) for hour in range(6)]


def feeds() -> str:
    return "".join(
        json.dumps(
            {
                "last_updated": 1_700_000_000 + 300 * i,
                "data": {
                    "stations": [
                        {"station_id": f"s{j}", "lat": 40 + j, "lon": -74.0,
                         "num_bikes_available": i * j}
                        for j in range(3)
                    ]
                },
            }
        )
        for i in range(4)
    )  # fmt: skip


GOOD = {
    "docomo": docomo_csv(CITY, by_gender=True)[:3000],
    "mlit": mlit_csv(CITY)[:2000],
    "meta": "quadkey,date_time,n_crisis\n"
    + "".join(f"012{i},2020-04-01 {h:02d}00,{h + i}\n" for h in (0, 8, 16) for i in range(3)),
    "gbfs": feeds(),
    "places": "time,lon,lat,count\n"
    + "".join(f"{hour},{139 + i / 9},35.{i % 3},{i}\n" for hour in HOURS for i in range(6)),
    "slots": "date,slot,mesh,n\n"
    + "".join(f"2024-01-01,{h},5339450{i},{i}\n" for h in range(6) for i in range(6)),
    "turned": "mesh,"
    + ",".join(HOURS)
    + "\n"
    + "".join(f"5339450{i}," + ",".join(f"{i * j}" for j in range(12)) + "\n" for i in range(6)),
    "numbered": "time,row,col,h3,count,west,south,east,north\n"
    + "".join(
        f"{hour},{i // 3},{i % 3},{617700169958293503 + i},{i * 4},139,35,139.3,35.2\n"
        for hour in HOURS
        for i in range(6)
    ),
    "wide": "time,a,b,c\n" + "".join(f"{hour},1,<5,{i * 3.5}\n" for i, hour in enumerate(HOURS)),
}


def read_or_refused(content: bytes) -> tuple[CountReport | None, str]:
    """The account of a file, or the sentence by which it is refused."""
    try:
        return read_counts(content, filename="file").report, ""
    except InputError as told:
        return None, str(told)


@pytest.mark.parametrize("kind", GOOD)
def test_damaged_files_are_read_or_refused_in_a_sentence(kind):
    random = np.random.default_rng(len(kind))
    refused = 0
    for _ in range(60):
        content = damaged(GOOD[kind].encode(), random)
        began = time.monotonic()
        report, sentence = read_or_refused(content)
        if report is None:
            assert sentence
            assert "\n" not in sentence
            refused += 1
        else:
            aside = sum(rows.count for rows in report.set_aside.values())
            assert report.rows_used + aside == report.rows_read
        assert time.monotonic() - began < 10
    assert 0 < refused < 60
