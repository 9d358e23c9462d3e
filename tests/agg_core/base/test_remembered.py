"""Keys of findings, and what is looked up by them."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

from agg_core.base import remembered
from agg_core.base.remembered import Remembered, fingerprint, later


@dataclass(frozen=True)
class Part:
    values: np.ndarray
    name: str | None = None


ALL = [
    (np.array([1.0, 2.0]),),
    (np.array([1, 2]),),
    (np.array([[1.0, 2.0]]),),
    (np.array([1.0]), np.array([2.0])),
    (Part(np.array([1.0, 2.0])),),
    (Part(np.array([1.0, 2.0]), "a"),),
    ((1, 2),),
    (1, 2),
    ("1", 2),
    (12,),
    (None,),
    (np.array(["a", "b"], dtype=object),),
    (sparse.csr_array(([1.0, 2.0], [0, 1], [0, 1, 2])),),
    (sparse.csr_array(([1.0, 3.0], [0, 1], [0, 1, 2])),),
    (sparse.csr_array(([1.0, 2.0], [1, 0], [0, 1, 2])),),
    (sparse.csr_array(([1.0, 2.0], [0, 1], [0, 2, 2])),),
    # One more move that may be, which nobody makes.
    (sparse.csr_array(([1.0, 0.0, 2.0], [0, 1, 1], [0, 2, 3])),),
]


def test_keys_of_different_values_differ_and_those_of_equal_ones_do_not():
    keys = [fingerprint(*parts) for parts in ALL]
    assert len(set(keys)) == len(ALL)
    assert keys[4] == fingerprint(Part(np.array([1.0, 2.0])))
    assert keys[12] == fingerprint(sparse.csr_array(np.diag([1.0, 2.0])))
    assert keys[0] == fingerprint(np.array([[1.0, 9.0], [2.0, 9.0]])[:, 0])


@dataclass(frozen=True)
class Grown(Part):
    """The same with a field that came later."""

    more: tuple = later(())


Grown.__name__ = Part.__name__


def test_a_field_that_came_later_counts_where_it_is_not_as_it_was():
    values = np.array([1.0, 2.0])
    assert fingerprint(Grown(values)) == fingerprint(Part(values))
    assert fingerprint(Grown(values, (1,))) != fingerprint(Part(values))


def test_another_edition_has_other_keys(monkeypatch):
    before = fingerprint(1)
    monkeypatch.setattr(remembered, "EDITION", 2)
    assert fingerprint(1) != before


def test_what_has_no_value_of_its_own_has_no_key():
    with pytest.raises(TypeError):
        fingerprint(object())


def test_only_what_was_used_is_kept():
    memory = Remembered({"used": [1.0], "not used": 2})
    assert memory.get("used") == [1.0]
    assert memory.get("unknown") is None
    memory.put("new", {"share": 0.5})
    assert memory.found == {"used": [1.0], "new": {"share": 0.5}}
    assert memory.get("new") == {"share": 0.5}
