from __future__ import annotations

import json
import os
import sys

import pytest

from agg_core.base import serving
from agg_core.base.shipped import app_folder
from agg_core.cli import app
from agg_core.cli.main import main


@pytest.fixture
def started(monkeypatch):
    """The commands that this process would have become."""
    commands: list[list[str]] = []
    monkeypatch.setattr(app.os, "execv", lambda program, words: commands.append(words))
    return commands


@pytest.fixture(autouse=True)
def safe(tmp_path, monkeypatch):
    """A user with a folder of runs, whom the options of nobody else reach."""
    home = tmp_path / "flows"
    home.mkdir(mode=0o700)
    for name in ("HOME", "FLOWS_HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("FLOWS_JOB_HOURS", "24")
    monkeypatch.setenv("FLOWS_LOG", "json")  # taken back afterwards, whatever a test makes of it
    for key in serving.DEFAULTS:
        monkeypatch.delenv(serving.variable(key), raising=False)
    monkeypatch.setattr(serving.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(serving, "_free_memory", lambda: None)
    monkeypatch.chdir(tmp_path)
    return home


SMALL = ["--server.maxUploadSize", "1"]


def test_a_safe_server_starts_with_further_options(started, capsys):
    assert main(["serve", *SMALL, "--server.port", "8600"]) == 0
    script = str(app_folder() / "app.py")
    further = [*SMALL, "--server.port", "8600"]
    assert started == [[sys.executable, "-m", "streamlit", "run", script, *further]]
    assert capsys.readouterr() == ("", "")


def test_events_are_lines_of_json_unless_somebody_chose(started, monkeypatch):
    monkeypatch.delenv("FLOWS_LOG")
    assert main(["serve", *SMALL]) == 0
    assert os.environ["FLOWS_LOG"] == "json"
    monkeypatch.setenv("FLOWS_LOG", "plain")
    assert main(["serve", *SMALL]) == 0
    assert os.environ["FLOWS_LOG"] == "plain"


def test_an_unsafe_server_is_not_started(started, capsys):
    assert main(["serve", *SMALL, "--server.enableCORS", "false"]) == 2
    assert started == []
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith("refused: ")
    assert told[0].endswith("[any-origin-allowed]")


def test_what_is_only_said_does_not_keep_it_from_starting(started, capsys):
    assert main(["serve", *SMALL, "--server.allowedHosts", "flows.example.org"]) == 0
    assert len(started) == 1
    assert capsys.readouterr().err.endswith("[no-login]\n")


def test_check_starts_nothing(started, capsys):
    assert main(["serve", "--check", *SMALL]) == 0
    assert capsys.readouterr().out
    assert started == []


def test_check_as_json(started, capsys, monkeypatch):
    monkeypatch.delenv("FLOWS_HOME")
    assert main(["serve", "--check", "--json", *SMALL]) == 2
    told = json.loads(capsys.readouterr().out)
    assert told["refused"] is True
    assert [(f["code"], f["refused"]) for f in told["findings"]] == [("home-missing", True)]
    assert started == []


def test_it_tells_its_options(started, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert "--check" in told
    assert "--server.port" in told
    assert started == []
