"""Other shapes of a table of counts: a row per cell and a column per time, H3 cells as numbers."""

import io
import json

import h3
import numpy as np
import pandas as pd
import pytest

from agg_core.base.errors import InputError
from agg_core.io.choices import Choices
from agg_core.io.counts import holds_counts, looks_like_counts, read_counts
from agg_core.io.sandbox import start_reading
from agg_core.space.settings import HexSettings, MeshSettings
from agg_core.tables.counts import MISSING, PUBLISHED, SUPPRESSED

HOURS = ["2024-01-01 00:00", "2024-01-01 01:00", "2024-01-01 02:00"]


def text(*rows, separator=","):
    return ("\n".join(separator.join(map(str, row)) for row in rows) + "\n").encode()


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (HOURS, "2024-01-01 00:00"),
        (["2024-01-01T00:00:00Z", "2024-01-01T01:00:00Z"], "2024-01-01 00:00"),
        (["2024/1/1 0:00", "2024/1/1 1:00", "2024/1/1 2:00"], "2024-01-01 00:00"),
        (["2024-01-01", "2024-01-02"], "2024-01-01 00:00"),
        (["20240101", "20240102", "20240103"], "2024-01-01 00:00"),
        (["202401011700", "202401011800"], "2024-01-01 17:00"),
    ],
)
@pytest.mark.parametrize("called", ["cell", "", "Region_2020"])
def test_a_row_per_cell_and_a_column_per_time(names, first, called):
    k = len(names)
    content = text([called, *names], ["A", *range(k)], ["B", *range(10, 10 + k)])
    assert holds_counts({"file": content})
    table = read_counts(content)
    assert table.cells == ("A", "B")
    assert table.counts.tolist() == [[i, 10 + i] for i in range(k)]
    assert str(table.times[0]).startswith(first)
    assert "a row per cell, a column per time" in table.report.guesses["times"].note


def test_marks_codes_and_lines_of_a_turned_table():
    rows = [["53394500", 12, "<10", ""], ["53394501", 14, -3, 16], ["", 1, 2, 3]]
    content = text(["mesh", *HOURS], *rows, separator=";")
    table = read_counts(content)
    assert table.grid == MeshSettings(codes=("53394500", "53394501"))
    P, S, M = PUBLISHED, SUPPRESSED, MISSING
    assert table.status.tolist() == [[P, P], [S, M], [M, P]]
    aside = table.report.set_aside
    assert aside["negative count"].lines == (3,)
    assert aside["missing cell"].count == 3
    assert set(aside["missing cell"].lines) == {4}
    assert table.report.rows_read == 9
    assert table.report.rows_used == 5


def test_hours_as_columns_beside_a_date():
    rows = [[c, f"2024-01-0{day}", *(100 * day + hour for hour in range(24))]
            for c in "AB" for day in (1, 2)]  # fmt: skip
    for names in (range(24), [f"{hour:02d}:00" for hour in range(24)]):
        table = read_counts(text(["site", "date", *names], *rows), tz="Asia/Tokyo")
        assert table.cells == ("A", "B")
        assert table.counts[:, 0].tolist() == [100 * d + h for d in (1, 2) for h in range(24)]
        assert table.sequence.max() == 0
        assert table.slots[:2] == ("00:00", "01:00")


def test_places_and_options_of_a_turned_table():
    rows = [[139.1, 35.1, "f", 1, 2], [139.2, 35.1, "f", 3, 4], [139.1, 35.1, "m", 5, 6],
            [139.2, 35.1, "m", 7, 8]]  # fmt: skip
    content = text(["lon", "lat", "gender", *HOURS[:2]], *rows)
    table = read_counts(content)
    at = table.grid.make().assign([139.1, 139.2], [35.1, 35.1])
    assert table.counts[:, at].tolist() == [[6, 10], [8, 12]]
    assert read_counts(content, where={"gender": "m"}).counts[:, at].tolist() == [[5, 7], [6, 8]]


@pytest.mark.parametrize("write", ["frame", "excel", "parquet", "json"])
def test_a_turned_table_of_any_kind(write):
    frame = pd.DataFrame({"cell": ["A", "B"], HOURS[0]: [1, 2], HOURS[1]: [3.0, None]})
    out = io.BytesIO()
    if write == "excel":
        frame.to_excel(out, index=False)
    elif write == "parquet":
        frame.to_parquet(out)
    elif write == "json":
        out.write(json.dumps(json.loads(frame.to_json(orient="records"))).encode())
    table = read_counts(frame if write == "frame" else out.getvalue())
    np.testing.assert_array_equal(table.counts, [[1, 2], [3, np.nan]])


@pytest.mark.parametrize(
    "content",
    [
        text(["user_id", *HOURS], ["A", 1, 2, 3], ["B", 4, 5, 6]),
        text(["A", *HOURS[:2]], ["B", *HOURS[:2]]),
        text(["trip", "start", "end"], ["1", *HOURS[:2]]),
    ],
)
def test_what_is_no_turned_table_of_counts(content):
    assert not holds_counts({"file": content})


def test_the_layout_can_be_stated():
    content = text(["cell", *HOURS], ["A", 1, 2, 3])
    assert read_counts(content, layout="transposed").n_moments == 3
    with pytest.raises(InputError) as told:
        read_counts(content, layout="long")
    assert (told.value.code, told.value.option) == ("column-not-found", "--column time=NAME")
    with pytest.raises(InputError) as told:
        read_counts(text(["time", "cell", "count"], [HOURS[0], "A", 1]), layout="transposed")
    assert told.value.code == "layout-mismatch"


def hexagons(n=4):
    return sorted(h3.grid_disk(h3.latlng_to_cell(35.68, 139.76, 9), 2))[:n]


@pytest.mark.parametrize("kind", [np.uint64, np.int64, str])
def test_hexagons_as_whole_numbers(kind):
    cells = hexagons()
    numbers = [kind(h3.str_to_int(cell)) for cell in cells]
    frame = pd.DataFrame({"time": HOURS[0], "cell": numbers, "count": range(4)})
    table = read_counts(frame)
    assert table.grid == HexSettings(cells=tuple(cells))
    assert table.counts.tolist() == [[0, 1, 2, 3]]
    written = frame.to_csv(index=False).encode()
    assert read_counts(written).grid == table.grid
    assert holds_counts({"file": written})


def test_hexagons_as_names_of_columns_and_in_a_turned_table():
    cells = hexagons(2)
    numbers = [str(h3.str_to_int(cell)) for cell in cells]
    wide = read_counts(text(["time", *numbers], [HOURS[0], 1, 2], [HOURS[1], 3, 4]))
    turned = read_counts(text(["h3", *HOURS[:2]], [numbers[0], 1, 3], [numbers[1], 2, 4]))
    assert wide.grid == turned.grid == HexSettings(cells=tuple(cells))
    assert wide.counts.tolist() == turned.counts.tolist() == [[1, 2], [3, 4]]


def test_large_numbers_that_are_no_hexagons_are_names():
    rows = [[HOURS[0], f"60000000000000000{i}", i] for i in range(3)]
    table = read_counts(text(["time", "cell", "count"], *rows))
    assert table.grid is None
    assert table.cells[2] == "600000000000000002"


@pytest.mark.parametrize("shape", ["turned", "numbers"])
def test_both_are_told_from_people_by_their_content(shape, tmp_path):
    numbers = [h3.str_to_int(cell) for cell in hexagons()]
    if shape == "turned":
        content = text(["cell", *HOURS], ["A", 1, 2, 3], ["B", 4, 5, 6])
    else:
        rows = ([HOURS[i % 3], cell, i] for i, cell in enumerate(numbers))
        content = text(["time", "cell", "n"], *rows)
    reading = start_reading({"file.csv": content}, Choices(), tmp_path / "r", kind="auto")
    reading.wait()
    assert reading.kind == "counts"
    assert reading.counts().n_moments == 3


def test_a_header_of_times_tells_counts():
    assert looks_like_counts(["cell", "time", "count"], [["A", HOURS[0], "1"]])
