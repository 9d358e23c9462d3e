import threading

import pytest

from agg_core.base import engine as engines
from agg_core.base.engine import check_engine, current, in_turn, use_engine
from agg_core.base.errors import EngineError
from agg_core.base.threads import one_thread
from tests.agg_core.base import parts
from tests.faults import refused
from tests.threads import in_two_threads


@pytest.mark.parametrize("n", [0, 1, 5])
def test_results_are_in_the_order_of_their_items(n):
    assert current().map(parts.square, range(n)) == [x**2 for x in range(n)]


def met():
    assert current().n_workers == 2
    return sorted(current().map(parts.met, range(2)))


def test_items_meet_in_two_threads_and_not_in_one():
    assert in_two_threads(met) == [0, 1]
    with one_thread():
        assert set(current().map(lambda _: threading.get_ident(), range(3))) == {
            threading.get_ident()
        }


def seen_within():
    """What two parts at once see, and this thread after them."""
    return [*current().map(parts.within, range(2)), current().n_workers]


def test_a_part_has_one_thread_and_does_its_own_parts_in_turn():
    assert in_two_threads(seen_within) == [(1, [0, 1, 4], 1), (1, [0, 1, 4], 1), 2]


def whole_work():
    (found,) = current().map(parts.within, [0])
    return found


def test_a_single_part_is_the_whole_work():
    assert in_two_threads(whole_work) == (2, [0, 1, 4], 2)


def failing(value):
    current().map(parts.inverse, [1, value])


@pytest.mark.parametrize("run", [in_two_threads, lambda function, value: function(value)])
def test_a_fault_in_a_part_is_raised(run):
    with pytest.raises(ZeroDivisionError):
        run(failing, 0)


def taken_ahead():
    """Items that are taken before each result is given, and after the one who asks has gone."""
    taken, seen = [], []

    def items():
        for item in range(100):
            taken.append(item)
            yield item

    results = current().each(parts.square, items())
    for _ in range(3):
        next(results)
        seen.append(len(taken))
    results.close()
    return seen, len(taken)


def test_items_are_taken_as_workers_come_free():
    seen, after = in_two_threads(taken_ahead)
    assert seen == [4, 5, 6]
    assert after == 6
    seen, after = taken_ahead()
    assert seen == [2, 2, 3]
    assert after == 3


def test_the_engine_in_use_is_that_of_the_innermost():
    local = current()
    with in_turn():
        serial = current()
        assert serial is not local
        with use_engine(None) as found:
            assert found is current() is serial
        with use_engine("local") as found:
            assert found is current() is local
        assert current() is serial
        with use_engine(local) as found:
            assert found is current() is local
    assert current() is local


def test_the_engine_before_is_in_use_again_after_a_fault():
    local = current()
    with pytest.raises(KeyError), in_turn():
        raise KeyError
    assert current() is local


@pytest.mark.parametrize(
    "spec", ["", "spark", "Dask", "dask:", "dask://", "dask://host", "dask://:1", "dask://h:x"]
)
def test_an_engine_that_there_is_not_is_refused(spec):
    with refused("engine-unknown", spec, kind=EngineError):
        check_engine(spec)
    with refused("engine-unknown", kind=EngineError), use_engine(spec):
        pass


@pytest.mark.parametrize("spec", ["local", "dask", "dask://host:8786", "dask://[::1]:8786"])
def test_engines_by_name(spec):
    check_engine(spec)


def test_without_dask_one_is_told_what_to_type(monkeypatch):
    monkeypatch.setattr(engines, "missing_of", lambda extra: ["distributed"])
    check_engine("local")
    with refused("package-missing", "agg-core[dask]", kind=EngineError):
        check_engine("dask")
