"""What tests of bad input share: the error that is expected, by its code."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agg_core.base.errors import InputError

__all__ = ["refused"]


@contextmanager
def refused(
    code: str, *told: str, kind: type[InputError] = InputError
) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """An error of this code is raised within; its sentence carries each name or value ``told``."""
    with pytest.raises(kind) as fault:
        yield fault
    assert fault.value.code == code, str(fault.value)
    for part in told:
        assert part in str(fault.value), str(fault.value)
