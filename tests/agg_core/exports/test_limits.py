"""What is withheld from a result is in no file that is made of it."""

import io
from dataclasses import replace

import geopandas as gpd
import numpy as np
import openmatrix
import pandas as pd
import pytest

from agg_core.evidence.limited import limited
from agg_core.evidence.privacy import Limit
from agg_core.exports import EXPORTS, ExportInput, check_limit, export_file_name
from agg_core.study.result import WHOLE_DAY
from tests.agg_core import counted
from tests.agg_core.exports import by_hand
from tests.agg_core.exports.by_hand import MORNING, NIGHT
from tests.faults import refused

LIMIT = Limit(2)
LIMITABLE = sorted(key for key, export in EXPORTS.items() if export.limitable)
HELD = {(1, 0): 0.75, (0, by_hand.OUT): 1.25, (by_hand.OUT, 1): 0.125, (3, 4): 0.375}
"""Other numbers of people below the limit."""


def others():
    """The same result with other numbers of all flows that are withheld."""
    flows = {
        key: {pair: HELD[pair] if count < LIMIT.least_people else count
              for pair, count in table.items()}
        for key, table in by_hand.FLOWS.items()
    }  # fmt: skip
    # Withheld as it would tell the one person beside it.
    flows[MORNING, "single"][0, 1] += 0.5
    return replace(by_hand.of_means(), written=flows)


def content(key, result, folder):
    """What a file holds, but for the time of writing."""
    made = EXPORTS[key].make(ExportInput(result, MORNING, "Some title"))
    path = folder / f"file{EXPORTS[key].suffix}"
    path.write_bytes(made)
    if key == "geopackage":
        layers = (gpd.read_file(path, layer=name) for name in ("cells", "flows"))
        return "".join(layer.to_json() for layer in layers)
    if EXPORTS[key].suffix == ".omx":
        with openmatrix.open_file(str(path)) as file:
            names = file.list_matrices()
            attributes = [(name, str(file[name].attrs["limit"])) for name in names]
            return repr([(np.array(file[name]).tolist()) for name in names]) + str(attributes)
    return made


@pytest.mark.parametrize("key", LIMITABLE)
def test_a_file_is_the_same_whatever_the_numbers_that_are_withheld(key, tmp_path):
    one, other = limited(by_hand.of_means(), LIMIT), limited(others(), LIMIT)
    assert EXPORTS[key].available(one)
    check_limit(EXPORTS[key], one)
    assert content(key, one, tmp_path) == content(key, other, tmp_path)


@pytest.mark.parametrize("key", sorted(EXPORTS.keys() - LIMITABLE))
def test_what_holds_more_than_flows_is_refused(key):
    with refused("cannot-be-limited"):
        check_limit(EXPORTS[key], limited(counted.drawn(), LIMIT))
    check_limit(EXPORTS[key], counted.drawn())


@pytest.mark.parametrize("key", LIMITABLE)
def test_flows_from_counts_can_be_limited(key):
    for moment in (WHOLE_DAY, counted.NIGHT):
        result = limited(counted.drawn(), Limit(4, 5))
        if EXPORTS[key].available(result):
            assert EXPORTS[key].make(ExportInput(result, moment))


def made(key, **asked):
    return EXPORTS[key].make(ExportInput(limited(by_hand.of_means(), LIMIT), MORNING, **asked))


def test_tables_say_below_how_many_people_flows_are_withheld():
    table = pd.read_csv(io.BytesIO(made("flows-csv")))
    assert set(table["least_people"]) == {2}
    assert set(table["estimate"].dropna()) == {4.0, 2.5}
    cells = gpd.read_file(io.BytesIO(made("geojson-cells")))
    assert set(cells["least_people"]) == {2}
    # Sums of what is shown: of the 4.5 people who leave cell 0, those to cell 1.
    assert cells.loc[0, ["estimate_out", "estimate_stay"]].tolist() == [2.5, 4.0]


@pytest.mark.parametrize("key", ["geojson-flows", "geojson-cells", "html", "omx"])
def test_files_with_room_for_a_sentence_have_it(key):
    assert LIMIT.words.encode() in made(key)


def test_flowmap_blue_tells_its_readers():
    import zipfile

    with zipfile.ZipFile(io.BytesIO(made("flowmap-blue"))) as archive:
        assert LIMIT.words in archive.read("properties.csv").decode()


def test_what_is_withheld_of_a_matrix_is_empty():
    matrix = pd.read_csv(io.BytesIO(made("od-csv")), index_col="origin")
    assert int(matrix.notna().sum().sum()) == 2
    lines = EXPORTS["od-csv"].make(ExportInput(limited(by_hand.of_means(), LIMIT), NIGHT))
    assert b"nan" not in lines.lower()


def test_the_name_of_the_file_tells_of_the_limit():
    name = export_file_name(EXPORTS["omx"], "08:00", (), 10)
    assert name == "omx-08-00-at-least-10-people.omx"
