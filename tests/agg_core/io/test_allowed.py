"""What the app may open of its machine: nothing unless the owner says so, nothing beyond."""

from __future__ import annotations

import os

import pandas as pd
import pytest

from agg_core.base.errors import InputError
from agg_core.io.allowed import FLOWS_FOLDERS, allowed_folders, allowed_source, allowed_sources


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A folder that is allowed, and beside it what is not."""
    for name in ("open", "other/open", "secret"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "fixes.csv").write_text("user,time,lon,lat\n")
    (tmp_path / "open" / "log").mkdir()
    (tmp_path / "open" / ".hidden").write_text("x")
    (tmp_path / "open" / "out").symlink_to(tmp_path / "secret")
    (tmp_path / "open" / "up").symlink_to("..")
    (tmp_path / "open" / "inside.csv").symlink_to("fixes.csv")
    (tmp_path / "open" / "round").symlink_to("round")
    folders = [tmp_path / "open", tmp_path / "other" / "open", tmp_path / "missing"]
    monkeypatch.setenv(FLOWS_FOLDERS, os.pathsep.join(map(str, folders)))
    return tmp_path


def test_nothing_is_allowed_unless_it_is_said(monkeypatch):
    for said in (None, "", os.pathsep):
        if said is None:
            monkeypatch.delenv(FLOWS_FOLDERS, raising=False)
        else:
            monkeypatch.setenv(FLOWS_FOLDERS, said)
        assert (allowed_folders(), dict(allowed_sources())) == ((), {})


def test_what_lies_within_has_a_name_and_nothing_else_has(machine):
    assert allowed_folders() == (machine / "open", machine / "other" / "open")
    assert list(allowed_sources()) == [
        "open/fixes.csv", "open/inside.csv", "open/log", "open (2)/fixes.csv",
    ]  # fmt: skip
    assert allowed_source("open (2)/fixes.csv") == machine / "other" / "open" / "fixes.csv"


@pytest.mark.parametrize(
    "name",
    ["open/../secret/fixes.csv", "open/out", "open/out/fixes.csv", "open/up", "open/.hidden",
     "../secret/fixes.csv", "/etc/passwd", "", "open", "open/fixes.csv\0", "open/log/../fixes.csv"],
)  # fmt: skip
def test_no_other_name_leads_anywhere(machine, name):
    with pytest.raises(InputError) as told:
        allowed_source(name)
    assert told.value.code == "source-not-allowed"
    with pytest.raises(InputError):
        allowed_source(str(machine / "open" / "fixes.csv"))


def test_a_link_made_after_the_look_is_refused(machine):
    assert allowed_source("open/log")
    (machine / "open" / "log").rmdir()
    (machine / "open" / "log").symlink_to(machine / "secret")
    with pytest.raises(InputError):
        allowed_source("open/log")
    assert pd.Series(list(allowed_sources())).str.endswith("log").sum() == 0
