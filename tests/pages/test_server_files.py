"""Folders of the server on the page Data: offered only if the owner says so, opened as any file."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from agg_core.io.allowed import FLOWS_FOLDERS
from tests.pages.visit import Visit

HOSTILE = "<img src=x onerror=alert(1)>*b*"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An allowed folder with a partitioned log of three people, and one beside it."""
    for name in ("shared", "secret"):
        for day in (6, 7):
            within = tmp_path / name / "log" / f"date=2024-05-0{day}"
            within.mkdir(parents=True)
            rows = [
                (f"u{i}", pd.Timestamp(f"2024-05-0{day} 08:{10 * j:02d}"), 139.5 + i / 100, 35.6)
                for i in range(3)
                for j in range(6)
            ]
            made = pd.DataFrame(rows, columns=["user", "time", "lon", "lat"])
            made.to_parquet(within / "part-0.parquet")
    (tmp_path / "shared" / HOSTILE).mkdir()
    monkeypatch.setenv(FLOWS_FOLDERS, str(tmp_path / "shared"))
    return tmp_path / "shared" / "log"


def test_nothing_is_offered_unless_the_owner_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FLOWS_FOLDERS, raising=False)
    assert "server.open" not in Visit("Data").keys("button")


def test_a_folder_of_the_server_is_read_where_it_lies(log: Path) -> None:
    visit = Visit("Data").set("server.choice", "shared/log").press("server.open")
    assert visit.figures["People"] == "3"
    assert visit.figures["Fixes kept"] == "36"
    assert visit.guesses["Files"] == "2 of 2 read"
    assert len(list(log.rglob("*.parquet"))) == 2
    visit.read_again(first_day="2024-05-07")
    assert visit.figures["Fixes kept"] == "18"
    assert visit.figures["Rows set aside"] == "18"


def test_a_fault_of_a_folder_leaves_what_is_open(log: Path) -> None:
    visit = Visit("Data").set("server.choice", "shared/log").press("server.open")
    (log / "link.parquet").symlink_to(log.parents[1] / "secret" / "log")
    visit.press("server.open")
    assert len(visit.errors) == 1
    assert visit.figures["People"] == "3"
    (log / "link.parquet").unlink()
    visit.set("server.choice", f"shared/{HOSTILE}").press("server.open")
    assert len(visit.errors) == 1
    assert "<img" not in visit.errors[0].replace("\\<", "")


def test_what_lies_outside_is_not_offered_nor_opened(log: Path) -> None:
    (log.parent / "out").symlink_to(log.parents[1] / "secret")
    visit = Visit("Data")
    assert visit.at.selectbox(key="server.choice").options == ["shared/" + HOSTILE, "shared/log"]
    visit.set("server.choice", "shared/log")
    log.rename(log.parents[1] / "moved")
    log.symlink_to(log.parents[1] / "secret" / "log")
    visit.press("server.open")
    assert len(visit.errors) == 1
    assert not visit.figures
