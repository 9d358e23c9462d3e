"""Every page test visits an app that nobody has used before."""

from collections.abc import Iterator

import pytest

from tests.pages.visit import cleared_session


@pytest.fixture(autouse=True)
def clear() -> Iterator[None]:
    with cleared_session():
        yield
