"""What takes several threads: a process of its own, as those of the tests have one."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

import pytest

__all__ = ["in_two_threads"]

Result = TypeVar("Result")


def in_two_threads(function: Callable[..., Result], *arguments: object) -> Result:
    """What a function of a module returns in a new process that has two threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "2")
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            return pool.submit(function, *arguments).result()
