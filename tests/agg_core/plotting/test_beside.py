"""The map of two results: each as a source of its own, in what both have."""

from dataclasses import replace

import numpy as np
import pytest

from agg_core.base.errors import InputError
from agg_core.plotting.beside import SOURCE_KEYS, flows_beside
from agg_core.plotting.flow_map import pack
from agg_core.study.beside import two_results
from agg_core.study.result import WHOLE_DAY
from tests.agg_core.counted import MORNING, NIGHT
from tests.agg_core.exports import by_hand
from tests.agg_core.plotting.unpacked import Unpacked
from tests.agg_core.study.test_beside import MOVES, OTHER_MOVES, made, other

HEADINGS = ("A: week", "B: month")


def sent(one, two):
    return Unpacked(pack(flows_beside(two_results(one, two), HEADINGS)).showing({"time": MORNING}))


def moves(flows):
    return {pair: n for pair, n in flows.items() if pair[0] != pair[1]}


def test_each_result_is_a_source_with_its_heading():
    got = sent(made(), other())
    assert [s["heading"] for s in got.header["sources"]] == list(HEADINGS)
    assert [s["name"] for s in got.header["sources"]] == ["A", "B"]
    assert got.header["times"] == [WHOLE_DAY, MORNING, NIGHT]
    assert got.header["wholeDay"] == WHOLE_DAY
    assert got.header["unit"] == "per hour"
    for key, flows in zip(SOURCE_KEYS, (MOVES, OTHER_MOVES), strict=True):
        for time in (MORNING, NIGHT):
            assert got.flows(key, time) == moves(flows[time])
    # 2 from 1 to 0 are in the one alone, 4 from 1 to 2 in the other; to the outside is no arrow.
    assert got.header["scales"]["difference"] == {"other": 6.0}


def test_steps_of_people_are_told_by_the_clock():
    got = sent(by_hand.result(), by_hand.result())
    assert got.header["steps"][0] == ["08:00 – 09:00", "09:00 – 10:00"]
    assert got.header["wholeDay"] is None


def test_what_only_one_knows_of_the_outside_is_left_out():
    inside = other(has_outside=False, people=np.ones((3, 4)) / 4, transmats=np.ones((3, 4, 4)) / 4)
    got = sent(made(), inside)
    assert got.table("estimate", MORNING)["moves"] == 8.0
    assert got.table("estimate", MORNING)["crossing"] == 0.0


def test_cells_without_a_place_have_no_map():
    one = replace(made(), grid=None)
    with pytest.raises(InputError) as refused:
        flows_beside(two_results(one, one), HEADINGS)
    assert refused.value.code == "cells-without-place"
