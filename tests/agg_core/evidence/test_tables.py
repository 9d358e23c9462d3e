"""Rows of evidence: their intervals, and what is said of an estimate that lies beside its own."""

import json

import numpy as np
import pandas as pd
import pytest

from agg_core.evidence.examine import Asked, examine
from agg_core.evidence.reference import of_source
from agg_core.evidence.sums import Sums
from agg_core.evidence.tables import corrected, records, rows_of
from tests.agg_core import counted


def test_only_an_estimate_beside_its_interval_is_corrected_to_its_middle():
    found = corrected([7.88, 7.65, 7.81, 7.0, 0.0, 5.0], [7.65, 7.65, 7.6, 7.5, 0.0, np.nan],
                      [7.81, 7.81, 7.81, 8.5, 0.0, np.nan])  # fmt: skip
    np.testing.assert_allclose(found, [7.73, np.nan, np.nan, 8.0, np.nan, np.nan])
    # Rounding is no reason.
    assert np.isnan(corrected(7.0, 7.0 + 1e-12, 7.0 + 2e-12))


def test_rows_hold_the_middle_of_the_errors_where_all_lie_to_one_side():
    errors = np.array([[4.0, -1.0], [5.0, 1.0], [6.0, 0.0]])
    rows = rows_of(Sums(np.array([10.0, 20.0]), errors), name=["a", "b"])
    # The mean of the errors is 5, and they differ by less than that.
    assert rows["corrected"].tolist()[0] == pytest.approx(15)
    assert rows["low"][0] > 10
    assert np.isnan(rows["corrected"][1])
    unsure = rows_of(Sums(np.array([10.0]), None))
    assert unsure[["low", "high", "corrected", "reference"]].isna().all(axis=None)


def test_every_table_of_evidence_tells_it_alike():
    result = counted.drawn()
    found = examine(result, Asked(reference=of_source(result, "usual")))
    for table in (found.lengths, found.histogram, found.trip_ends):
        value = table["value" if "value" in table else "count"].astype(float)
        beside = (value < table["low"] - 1e-6) | (value > table["high"] + 1e-6)
        assert (table["corrected"].notna() == beside).all()
    for name in ("slope", "rmse"):
        assert f"{name}_corrected" in found.fits
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert all("corrected" in row for row in told["trip_ends"])


def test_what_is_no_finite_number_is_none_in_json():
    table = pd.DataFrame({"a": [1.0, np.nan, np.inf], "b": ["x", "y", "z"]})
    assert [row["a"] for row in records(table)] == [1.0, None, None]
