"""A file into a canonical table on disk, some people at a time: the same as all at once."""

import numpy as np
import pandas as pd
import pytest

from agg_core.base.errors import InputError
from agg_core.io import Choices, read_trajectories, spool
from agg_core.io.reading import converting_steps
from agg_core.tables.trajectories import read_canonical


def log(n_people=40, n_rows=3_000, seed=0):
    """Fixes in order of time, with twins, leaps, a broken clock and rows without a place."""
    rng = np.random.default_rng(seed)
    minutes = np.sort(rng.integers(0, 3_000, n_rows))
    time = (pd.Timestamp("2024-02-01") + pd.to_timedelta(minutes, "min")).strftime("%Y-%m-%d %H:%M")
    lon = 139.5 + 0.01 * rng.normal(size=n_rows) + 5.0 * (rng.random(n_rows) < 0.02)
    table = pd.DataFrame(
        {
            "user_id": [f"u{i}" for i in rng.integers(n_people, size=n_rows)],
            "time": np.where(rng.random(n_rows) < 0.01, "2043-01-01 00:00", time),
            "lon": np.where(rng.random(n_rows) < 0.01, np.nan, lon),
            "lat": 35.6,
        }
    )
    return table.to_csv(index=False).encode()


@pytest.mark.parametrize("people", [1, 7, 1_000])
@pytest.mark.parametrize(
    "stated",
    [{}, {"max_speed": 300.0}, {"duplicates": "first", "time_outliers": "keep"}],
)
def test_it_is_what_is_read_all_at_once(monkeypatch, tmp_path, people, stated):
    monkeypatch.setattr(spool, "PEOPLE", people)
    expected = read_trajectories(log(), **stated)
    steps = list(converting_steps(log(), Choices.of(**stated), tmp_path / "all.parquet"))
    found = read_canonical(tmp_path / "all.parquet")
    pd.testing.assert_frame_equal(found.table, expected.table)
    before, after = expected.report.to_dict(), found.report.to_dict()
    for report in (before, after):  # which rows are shown first depends on the order of the work
        report.pop("set_aside_examples")
    assert after == before
    assert steps[0].columns == ("user_id", "time", "lon", "lat")
    shares = [step.share for step in steps]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert [path.name for path in tmp_path.iterdir()] == ["all.parquet"]


def test_what_cannot_be_read_leaves_nothing(tmp_path):
    text = b"user_id,time,lon,lat\na,2024-02-01,999,1\n"
    with pytest.raises(InputError) as told:
        list(converting_steps(text, Choices(), tmp_path / "all.parquet"))
    assert told.value.code == "no-rows-left"
    assert list(tmp_path.iterdir()) == []
