"""Tables of flows that a job is given."""

import pandas as pd
import pytest

from agg_core.base.errors import InputError
from agg_core.io.flow_tables import KnownStates, read_flow_table
from agg_core.io.kept_flows import open_flow_table, write_flow_table

KNOWN = KnownStates(("a", "b"), "outside", ("08:00", "09:00"), 60.0)
ROWS = pd.DataFrame({
    "date": ["2024-05-01", "2024-05-02", "2024-05-02"], "time": ["08:00", "08:00", "09:00"],
    "origin": ["a", "a", "b"], "dest": ["b", "b", "x"], "count": [1, 2, 3],
})  # fmt: skip


@pytest.mark.parametrize("by_date", [True, False])
def test_kept_as_it_is(tmp_path, by_date) -> None:
    table = read_flow_table(ROWS, KNOWN, by_date=by_date)
    write_flow_table(table, tmp_path / "kept")
    found = open_flow_table(tmp_path / "kept")
    pd.testing.assert_frame_equal(found.flows, table.flows)
    assert (found.times, found.dates) == (table.times, table.dates)
    assert found.set_aside == table.set_aside


def test_another_file_is_refused(tmp_path) -> None:
    ROWS.to_parquet(tmp_path / "other")
    for name in ("other", "none"):
        with pytest.raises(InputError) as fault:
            open_flow_table(tmp_path / name)
        assert fault.value.code == "flows-unreadable"
