"""Steps told in other words, and their result."""

import gc
import weakref

import pytest

from agg_core.base.relay import last_of, relayed


def counting(most):
    """Numbers, and how many there were."""
    yield from range(most)
    return most


@pytest.mark.parametrize("most", [0, 3])
def test_each_step_is_told_and_the_result_returned(most):
    results = []

    def hearing():
        results.append((yield from relayed(counting(most), lambda number: f"step {number}")))

    assert list(hearing()) == [f"step {number}" for number in range(most)]
    assert results == [most]


def test_a_fault_passes_through():
    def failing():
        yield 1
        raise ValueError("no more")

    told = relayed(failing(), str)
    assert next(told) == "1"
    with pytest.raises(ValueError, match="no more"):
        next(told)


def test_the_last_step_is_the_only_one_that_is_kept():
    alive = weakref.WeakSet()

    class Step:
        def __init__(self):
            alive.add(self)

    def steps():
        for _ in range(10):
            yield Step()
            gc.collect()
            assert len(alive) <= 2

    assert isinstance(last_of(steps()), Step)
    with pytest.raises(StopIteration):
        last_of([])
