"""Every page test visits an app that nobody has used before."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages.visit import cleared_session
from ui.cached import store


@pytest.fixture(autouse=True)
def clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FLOWS_HOME", str(tmp_path / "home"))
    store.clear()
    with cleared_session():
        yield
    store.clear()
