"""Checkpoints: what is kept is read as it was, and what cannot be read is done again."""

from collections import deque
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from agg_core.base import checkpoints as kept_by
from agg_core.base.checkpoints import Checkpoints, checkpoints, use_checkpoints
from agg_core.base.moves import moves_like
from agg_core.learn.mstep import Statistics
from agg_core.model.emissions import CategoricalEmission
from agg_core.model.hmm import HMM


@pytest.fixture
def kept(tmp_path):
    return Checkpoints(tmp_path / "checkpoint")


def test_values_are_read_as_they_were(kept):
    table = sparse.csr_array(np.array([[0.0, 0.3], [0.1, 0.0]]))
    value = {
        "floats": (0.1, float("inf"), -0.0, 1e-320),
        "numbers": [1, True, None, np.float64(0.1), np.int32(7)],
        ("key", 2): deque([1.5, 2.5], 4),
        "array": np.arange(6, dtype=np.int16).reshape(2, 3),
        "sums": Statistics(np.ones(2), moves_like(table, np.array([0.3, 0.1]))),
        "frame": pd.DataFrame({"a": np.arange(3, dtype=np.int8), "b": [0.1, 0.2, 0.3]}),
    }
    assert kept.put("name", value)
    found = kept.get("name")
    assert found["floats"] == value["floats"]
    assert str(found["floats"][2]) == "-0.0"
    assert [type(n) for n in found["numbers"]] == [int, bool, type(None), np.float64, np.int32]
    assert found["key", 2] == deque([1.5, 2.5])
    assert found["key", 2].maxlen == 4
    assert found["array"].dtype == np.int16
    np.testing.assert_array_equal(found["array"], value["array"])
    np.testing.assert_array_equal(found["sums"].transitions.toarray(), table.toarray())
    pd.testing.assert_frame_equal(found["frame"], value["frame"])


def test_nan_stays(kept):
    kept.put("nan", float("nan"))
    assert np.isnan(kept.get("nan"))


def test_one_object_stays_one_and_known_ones_are_those_that_are_given(kept):
    emission = CategoricalEmission(np.eye(2))
    one = HMM(np.full(2, 0.5), np.full((2, 2), 0.5), emission)
    other = HMM(one.startprob, np.eye(2), emission)
    kept.put("models", (one, other, one))
    a, b, c = kept.get("models")
    assert a is c
    assert a.emission is b.emission
    kept.put("known", (one, other), known=[emission])
    a, b = kept.get("known", known=[emission])
    assert a.emission is emission
    assert b.emission is emission


@dataclass
class Foreign:
    value: int


@pytest.mark.parametrize(
    "value",
    [Foreign(1), object(), np.array([object()]), {1, 2}, np.random.default_rng(0), 1j,
     pd.DataFrame({"a": [1]}, index=["row"])],
)  # fmt: skip
def test_what_is_not_plain_is_not_kept(kept, value):
    assert not kept.put("name", [value])
    assert kept.get("name") is None


def test_nothing_is_kept_without_a_folder(tmp_path):
    assert checkpoints().folder is None
    assert not checkpoints().put("name", 1)
    with use_checkpoints(tmp_path / "checkpoint"):
        assert checkpoints().put("name", 1)
    assert checkpoints().get("name") is None


def test_another_version_has_not_found_it(kept, monkeypatch):
    kept.put("name", 1)
    monkeypatch.setattr(kept_by, "__version__", "0.0.0")
    assert kept.get("name") is None


def test_what_is_cut_or_altered_is_not_there(kept):
    value = (np.arange(50.0), {"a": 1.5})
    kept.put("name", value)
    (file,) = kept.folder.iterdir()
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    for end in np.linspace(0, len(whole) - 1, 10).astype(int):
        file.write_bytes(whole[:end])
        assert kept.get("name") is None
    for bit in rng.integers(0, 8 * len(whole), 200):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << (bit % 8)
        file.write_bytes(flipped)
        found = kept.get("name")
        if found is not None:  # a bit that says nothing
            np.testing.assert_array_equal(found[0], value[0])
            assert found[1] == value[1]


def test_only_dataclasses_of_the_package_are_made(kept):
    kept.put("name", Statistics(np.ones(1), np.ones((1, 1))))
    (file,) = kept.folder.iterdir()
    with np.load(file) as arrays:
        parts = dict(arrays)
    for module, name in (("os", "path"), ("agg_core.base.checkpoints", "Checkpoints")):
        told = parts["tree"].tobytes().decode()
        told = told.replace("agg_core.learn.mstep", module).replace("Statistics", name)
        np.savez(file, **{**parts, "tree": np.frombuffer(told.encode(), dtype=np.uint8)})
        assert kept.get("name") is None


def test_each_does_what_was_not_kept_in_order(kept):
    done = []

    def square(number):
        done.append(number)
        return number**2

    steps = kept.each("squares", square, range(6))
    assert [next(steps) for _ in range(3)] == [0, 1, 4]
    steps.close()
    begun = len(done)
    done.clear()
    assert list(kept.each("squares", square, range(6))) == [0, 1, 4, 9, 16, 25]
    assert sorted(done) == [3, 4, 5]
    assert begun <= 6
    done.clear()
    assert list(kept.each("squares", square, range(6))) == [0, 1, 4, 9, 16, 25]
    assert done == []
    # One in the middle is lost: it alone is done again.
    kept._path("squares/2").unlink()
    assert list(kept.each("squares", square, range(6))) == [0, 1, 4, 9, 16, 25]
    assert done == [2]


def test_results_that_are_none_are_kept_too(kept):
    assert list(kept.each("none", lambda _: None, range(3))) == [None] * 3
    assert list(kept.each("none", lambda _: 1 / 0, range(3))) == [None] * 3


def test_steps_of_several_are_told_again(kept):
    def count_to(number):
        yield from range(number)
        return -number

    def run(function):
        steps, told = kept.steps("counts", function, [2, 3]), []
        while True:
            try:
                told.append(next(steps))
            except StopIteration as end:
                return told, end.value

    assert run(count_to) == ([0, 1, 0, 1, 2], [-2, -3])
    assert run(lambda _: iter(())) == ([0, 1, 0, 1, 2], [-2, -3])


def test_a_part_that_is_work_in_itself_has_names_of_its_own(tmp_path):
    with use_checkpoints(tmp_path / "kept") as kept:
        one, other = kept.below("one"), kept.below("other")
        assert one != other
        kept.put("fit", 0)
        for number, folder in enumerate((one, other), start=1):
            with use_checkpoints(folder) as inner:
                assert inner.get("fit") is None
                assert inner.put("fit", number)
    with use_checkpoints(tmp_path / "kept") as kept, use_checkpoints(kept.below("other")) as inner:
        assert (kept.get("fit"), inner.get("fit")) == (0, 2)
    assert Checkpoints(None).below("one") is None
