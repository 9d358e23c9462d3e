"""Every page test visits an app that nobody has used before, whose processes start at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agg_core.store.jobs import Job
from tests.pages.visit import cleared_session
from tests.warm import fork_from_now_on
from ui.cached import lab_result, lab_store, store
from ui.workspace import jobs


@pytest.fixture(autouse=True)
def clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FLOWS_HOME", str(tmp_path / "home"))
    fork_from_now_on(monkeypatch)
    for cached in (store, lab_store, lab_result):
        cached.clear()
    with cleared_session():
        yield
        for each in jobs().all():
            if isinstance(each, Job):
                each.remove()
    for cached in (store, lab_store, lab_result):
        cached.clear()
