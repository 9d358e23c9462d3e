"""Commands, files and columns that are not there, and the command line as a program."""

import subprocess
import sys

import pytest

from tests.agg_core.cli.told import QUICK, assert_matches, only_sentence, strict_json, text_file

BAD_FILES = {
    "no time column": (
        "user_id,lon,lat\na,1,2\n",
        r"^No time column found among: user_id, lon, lat; say which column it is "
        r"\(--column time=NAME\)\.$",
    ),
    "no position columns": (
        "user_id,time\na,2024-05-01T00:00:00Z\n",
        r"^No longitude or latitude column found .* which columns they are \(--column lon=NAME",
    ),
    "empty file": ("", r"^given\.csv is empty; choose a file that holds trajectories\.$"),
    "header only": (
        "user_id,time,lon,lat\n",
        r"^given\.csv has a header but no rows; choose a file that holds trajectories\.$",
    ),
    "no table": ("good morning\nto you\n", r"^given\.csv is not a table with columns"),
}


@pytest.mark.parametrize("command", ["inspect", "learn"])
@pytest.mark.parametrize(("text", "sentence"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_that_cannot_be_used(run, tmp_path, command, text, sentence):
    code, out, err = run(command, text_file(tmp_path, text))
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), sentence)


@pytest.mark.parametrize("command", ["inspect", "learn"])
def test_a_missing_file_and_a_folder(run, tmp_path, command):
    code, out, err = run(command, tmp_path / "missing.csv")
    assert (code, out) == (2, "")
    assert "missing.csv" in only_sentence(err)
    code, out, err = run(command, tmp_path)
    assert (code, out) == (2, "")
    only_sentence(err)


BAD_COLUMNS = {
    "unknown column to select by": (
        ["--where", "nope=1"],
        r"^No column is called 'nope' to select rows by; the file has: user_id, time, lon, lat\.$",
    ),
    "no value to select": (["--where", "nope"], r"^--where takes NAME=VALUE, not 'nope'\.$"),
    "nobody selected": (["--where", "user_id=nobody"], r"^No row is left: .*user_id=nobody"),
    "unknown column": (["--column", "lon=x"], r"^No column is called 'x'; the file has: "),
    "no such number": (["--column", "lon=9"], r"^No column is called '9'; the file has: "),
    "no digit that counts": (["--column", "lon=²"], r"^No column is called '²'; the file has: "),
    "unknown role": (["--column", "longitude=lon"], r"^No column role is called 'longitude'; choo"),
    "unknown zone": (["--tz", "Mars/Base"], r"^No time zone is called 'Mars/Base'; use a name"),
}


@pytest.mark.parametrize("command", ["inspect", "learn"])
@pytest.mark.parametrize(("options", "sentence"), BAD_COLUMNS.values(), ids=BAD_COLUMNS)
def test_columns_that_are_not_there(run, file, command, options, sentence):
    code, out, err = run(command, file, *options)
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), sentence)


@pytest.mark.parametrize("arguments", [[], ["fly"], ["inspect"], ["learn"]], ids=str)
def test_commands_that_are_no_commands(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "error: " in err.splitlines()[-1]


def program(repository, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "agg_core", *arguments],
        cwd=repository, capture_output=True, text=True, timeout=120, check=False, **options,
    )  # fmt: skip


def test_the_program_learns(repository, file):
    ended = program(repository, "learn", file, *QUICK, "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert strict_json(ended.stdout)["n_individuals"] == 60


def test_the_program_complains_with_code_2(repository, file):
    ended = program(repository, "inspect", file, "--where", "nope=1")
    assert (ended.returncode, ended.stdout) == (2, "")
    only_sentence(ended.stderr)
