"""What sessions hold: apart from each other, and dropped some time after they have gone."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from agg_core.made.samples import count_sample
from tests.agg_core import tiny
from tests.faults import disk_refuses, refused
from ui import workspace
from ui.workspace import KEPT_S, Workspace, forget, held_by, sweep


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Ids of the sessions whose browser is there."""
    ids: set[str] = set()
    there = SimpleNamespace(is_active_session=ids.__contains__)
    monkeypatch.setattr(workspace.runtime, "exists", lambda: True)
    monkeypatch.setattr(workspace.runtime, "get_instance", lambda: there)
    monkeypatch.setattr(workspace, "_workspaces", {})
    monkeypatch.setattr(workspace, "_seen", {})
    monkeypatch.setattr(workspace.time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(workspace, "_sweep_from_now_on", lambda: None)
    yield ids
    for session in ("one", "other"):
        forget(session)


def of_session(session: str, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    context = SimpleNamespace(session_id=session)
    monkeypatch.setattr(workspace, "get_script_run_ctx", lambda: context)
    return workspace.workspace()


def test_each_session_has_its_own(connected: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (of_session(session, monkeypatch) for session in ("one", "other"))
    assert one is not other
    assert of_session("one", monkeypatch) is one
    one.held["x"] = 1
    assert held_by("one") == {"x": 1}
    assert held_by("other") == held_by("nobody") == {}


def test_what_a_session_holds_goes_some_time_after_its_browser(
    connected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (of_session(session, monkeypatch) for session in ("one", "other"))
    one.keep(tiny.people())
    held = [one.folder, other.folder]
    connected.update(("one", "other"))
    sweep(10 * KEPT_S)
    connected.remove("one")
    sweep(11 * KEPT_S - 1)
    assert of_session("one", monkeypatch) is one, "a connection may be lost for a while"
    workspace._seen["one"] = 11 * KEPT_S
    sweep(12 * KEPT_S + 1)
    assert of_session("other", monkeypatch) is other
    assert [folder.exists() for folder in held] == [False, True]
    assert of_session("one", monkeypatch) is not one


def test_where_nobody_can_be_asked_nothing_is_dropped(
    connected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = of_session("one", monkeypatch)
    monkeypatch.setattr(workspace.runtime, "exists", lambda: False)
    sweep(100 * KEPT_S)
    assert of_session("one", monkeypatch) is one


def test_what_a_killed_server_left_is_cleared_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    alive, left = Workspace(), Workspace()
    of_alive, of_left = alive.folder, left.folder
    assert left._made is not None
    os.close(left._made[1])  # as the end of its process does
    strange = tmp_path / f"{workspace.PREFIX}strange"
    strange.mkdir()
    (tmp_path / f"{workspace.PREFIX}link").symlink_to(strange)
    workspace.clear_left_overs()
    assert not of_left.exists()
    assert of_alive.exists()
    assert strange.exists()
    alive.close()
    assert not of_alive.exists()


def test_a_session_without_files_has_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = Workspace()
    own.keep(tiny.people())
    assert not list(tmp_path.iterdir())
    own.close()


def test_counts_that_the_disk_refuses_leave_what_was_there(tmp_path: Path) -> None:
    own = Workspace()
    key = own.keep(tiny.people())
    with disk_refuses(own.folder, errno.ENOSPC), refused("disk-refused"):
        own.keep_counts(count_sample())
    assert list(own.datasets) == [key]
    assert [entry.name for entry in own.folder.iterdir()] == [workspace.LOCK]
    assert list(own.counts) == []
    own.close()
