import os

import pytest
from numba import get_num_threads

import agg_core.learn.esteps
from agg_core.base.threads import one_thread, wait_asleep

POLICY = "OMP_WAIT_POLICY"


def test_kernels_with_threads_come_with_the_way_to_wait():
    """Asked of the module, so that nobody drops the import that sets it."""
    assert agg_core.learn.esteps.INFERENCE
    assert POLICY in os.environ


def test_who_waits_sleeps_unless_the_environment_says_otherwise(monkeypatch):
    monkeypatch.delenv(POLICY)
    wait_asleep()
    assert os.environ[POLICY] == "PASSIVE"
    monkeypatch.setenv(POLICY, "ACTIVE")
    wait_asleep()
    assert os.environ[POLICY] == "ACTIVE"


def test_one_thread_until_the_end_whatever_it_is():
    def fail_within():
        with one_thread():
            assert get_num_threads() == 1
            raise KeyError

    before = get_num_threads()
    with pytest.raises(KeyError):
        fail_within()
    assert get_num_threads() == before
