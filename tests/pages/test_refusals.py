"""A machine that refuses: each page says so in a sentence, and nothing that was loaded is lost."""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from agg_core.base.engine import ENGINES_ALLOWED
from agg_core.base.logs import FLOWS_LOG
from agg_core.base.serving import JOB_HOURS
from agg_core.io.allowed import FLOWS_FOLDERS
from agg_core.made.samples import SAMPLES
from agg_core.store.runs import default_folder
from tests.agg_core import counted, tiny
from tests.faults import disk_refuses
from tests.pages.visit import PAGES, Visit
from ui import cached, shell
from ui.workspace import workspace

SAMPLE = SAMPLES["tokyo_commuters"]
RUN = "sample-tokyo"
HOME = "FLOWS_HOME"
QUOTAS = ("FLOWS_RUNS_EACH", "FLOWS_RUNS_IN_ALL")
VARIABLES = (HOME, *QUOTAS, ENGINES_ALLOWED, FLOWS_FOLDERS, FLOWS_LOG, JOB_HOURS)
SENSELESS = ("abc", "-1", "1e99", "~nobody-is-called-so/x", "x" * 5000, "\udcff<b>x</b>")

Faults = list[str]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Faults:
    """What pages told that nobody foresaw, each with the way that it came."""
    faults: Faults = []

    def note(event: str, code: str, *, fault: BaseException | None = None, **_: float) -> None:
        if fault is not None:
            faults.append("".join(traceback.format_exception(fault)))

    monkeypatch.setattr(shell, "note", note)
    return faults


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a senseless name makes of a folder is made here."""
    (tmp_path / "cwd" / "a").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "cwd" / "a")


def opened() -> Visit:
    """A session with data and flows."""
    return Visit("Data").press(f"data.{SAMPLE.key}").go("Home").press(f"home.{RUN}")


def as_a_new_server() -> None:
    for each in (cached.store, cached.lab_store, cached.lab_result):
        each.clear()


def is_whole(visit: Visit) -> None:
    """What was loaded is there: data and flows."""
    now = visit.at.session_state["app"]
    assert now.dataset.title == SAMPLE.title
    assert now.shown.finished.key == RUN
    assert shell.plain(SAMPLE.title) in visit.captions


def walk(visit: Visit, told: Faults) -> None:
    """Through every page; no page breaks, and all show what they showed."""
    for page in PAGES:
        visit.go(page)
        assert not told, told[0]
        assert visit.title, page
        is_whole(visit)
    assert visit.go("Flows").maps


# ---------------------------------------------------------------- places that are none


def _no_place(home: Path) -> str:
    return "/proc/nothing/here"


def _a_file(home: Path) -> str:
    home.write_text("no folder")
    return str(home)


def _below_a_file(home: Path) -> str:
    return f"{_a_file(home)}/below"


def _files_within(home: Path) -> str:
    home.mkdir()
    for name in ("runs", "jobs", "lab"):
        (home / name).write_text("no folder")
    return str(home)


def _links_to_nothing(home: Path) -> str:
    home.mkdir()
    for name in ("runs", "jobs", "lab"):
        (home / name).symlink_to("/proc/nothing")
    return str(home)


PLACES = (_no_place, _a_file, _below_a_file, _files_within, _links_to_nothing)


@pytest.mark.parametrize("place", PLACES)
def test_no_page_breaks_where_there_is_no_place_for_runs(
    place: Callable[[Path], str], told: Faults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit = opened()
    monkeypatch.setenv(HOME, place(tmp_path / "none"))
    as_a_new_server()
    walk(visit, told)
    refused_actions(visit)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_no_page_breaks_where_the_disk_refuses(
    number: int, told: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = cached.store().save(counted.study(), "kept")
    visit = opened()
    with disk_refuses(default_folder().parent, number):
        as_a_new_server()
        walk(visit, told)
        refused_actions(visit)
        changes_of_a_run_are_refused(visit, run.id)
    as_a_new_server()
    visit.go("Runs")
    assert f"runs.{run.id}.open" in visit.keys("button")
    assert cached.store().about(run.id).title == "kept"


def refused_actions(visit: Visit) -> None:
    """What must be written is refused, in one sentence each, and all stays as it was."""
    visit.go("Learn").press("start")
    assert len(visit.errors) == 1
    is_whole(visit)
    visit.go("Lab").set("view.lab.part", "experiments").press("lab.start")
    assert len(visit.errors) == 1
    is_whole(visit)


def changes_of_a_run_are_refused(visit: Visit, run_id: str) -> None:
    visit.go("Runs")
    if visit.errors:  # nothing can be looked at
        return
    visit.press(f"runs.{run_id}.manage").set(f"runs.{run_id}.title", "other")
    visit.press(f"runs.{run_id}.rename")
    assert len(visit.errors) == 1
    visit.at.checkbox(key=f"runs.{run_id}.sure").check()
    visit.go("Runs").press(f"runs.{run_id}.delete")
    assert len(visit.errors) <= 1  # to delete needs no room
    is_whole(visit)


# ---------------------------------------------------------------- the place of files that come


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files that come are kept for a while, which will be full."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_a_full_place_for_what_comes_is_told(full: Path, told: Faults) -> None:
    people = tiny.frame(tiny.day_states()).to_csv(index=False)
    visit = opened()
    with disk_refuses(full):
        walk(visit, told)
        visit.go("Data").upload("sixty.csv", people)
        assert len(visit.errors) == 1
        is_whole(visit)
        visit.press("data.counts")
        assert len(visit.errors) == 1
        is_whole(visit)
        visit.go("Flows").press("shipped.again")
    visit.go("Data").upload("sixty.csv", people)
    assert not visit.errors
    assert visit.at.session_state["app"].dataset.title == "sixty.csv"


def test_a_first_visit_to_a_full_machine_works_without_files(full: Path, told: Faults) -> None:
    with disk_refuses(full), disk_refuses(default_folder().parent):
        walk(opened(), told)
        assert workspace()._made is None


# ---------------------------------------------------------------- the catalogue


def _damage(content: bytes) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.write_bytes(content)

    return damage


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _of_a_later_version(path: Path) -> None:
    with sqlite3.connect(path) as catalogue:
        catalogue.execute("PRAGMA user_version = 99")


def _another_table(path: Path) -> None:
    with sqlite3.connect(path) as catalogue:
        catalogue.execute("DROP TABLE runs")
        catalogue.execute("CREATE TABLE runs (x)")


def _without_table(path: Path) -> None:
    with sqlite3.connect(path) as catalogue:
        catalogue.execute("DROP TABLE runs")


def _altered(path: Path) -> None:
    with sqlite3.connect(path) as catalogue:
        catalogue.execute("UPDATE runs SET about = ?", (b"\xff\x00",))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "nothing": _damage(b""), "noise": _damage(os.urandom(0) + bytes(range(256)) * 64),
    "text": _damage(b"SQLite format 3\x00" + b"x" * 4096), "cut": _cut, "folder": _a_folder,
    "link": _a_link, "pipe": _a_pipe, "later": _of_a_later_version, "table": _another_table,
    "empty": _without_table, "altered": _altered,
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_catalogue_breaks_no_page(damage: str, told: Faults) -> None:
    run = cached.store().save(counted.study(), "kept")
    visit = opened()
    DAMAGES[damage](default_folder() / "catalogue.sqlite")
    as_a_new_server()
    walk(visit, told)
    visit.go("Runs")
    assert f"runs.{run.id}.open" in visit.keys("button") or len(visit.errors) == 1
    address = Visit("Flows", run=run.id)
    assert address.maps or len(address.errors) == 1
    assert not told, told[0]


# ---------------------------------------------------------------- the environment


@pytest.mark.parametrize("variable", VARIABLES)
def test_senseless_values_of_the_environment_break_no_page(
    variable: str,
    told: Faults,
    elsewhere: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    visit = opened()
    for value in SENSELESS:
        monkeypatch.setenv(variable, value)
        as_a_new_server()
        walk(visit, told)
