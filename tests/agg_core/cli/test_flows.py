"""Files that `agg-core flows` writes of a saved result."""

import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from agg_core.cli import main as command_line
from agg_core.exports import EXPORTS
from agg_core.store.codec import load_result
from tests.agg_core.cli.told import QUICK, assert_matches, only_sentence

OF_DRAWS = {"ensemble", "draws-netcdf", "omx-draws"}


@pytest.fixture(scope="module")
def kept(file, tmp_path_factory):
    """A folder that learn --save wrote, with two times of day."""
    folder = tmp_path_factory.mktemp("kept") / "run"
    arguments = ["learn", file, *QUICK, "--times", "05:00", "08:00", "--save", str(folder)]
    assert command_line.main(arguments) == 0
    return folder


def test_learn_saves_what_it_learned(kept, file):
    result = load_result(kept)
    assert [a.time for a in result.by_time] == ["05:00", "08:00"]
    assert result.settings.learn.group_size == 5
    assert result.n_individuals == 60


def test_a_place_that_cannot_be_written_to_is_one_sentence(run, file, kept, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = run("learn", file, *QUICK, "--save", tmp_path / "file" / "run")
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), r"file/run could not be written \((Not a directory|File ex)")
    nowhere = tmp_path / "nowhere" / "x.csv"
    code, _, err = run("flows", kept, "--format", "od-csv", "--out", nowhere)
    assert code == 2
    assert_matches(only_sentence(err), r"x\.csv could not be written \(No such file")


def test_flows_lists_the_formats(run):
    code, out, err = run("flows", "--list")
    assert (code, err) == (0, "")
    lines = [line.split(maxsplit=1) for line in out.splitlines()]
    assert lines == [[key, export.about] for key, export in EXPORTS.items()]


def matrix_of(content):
    return pd.read_csv(io.BytesIO(content), index_col="origin").to_numpy()


def test_flows_writes_a_file_named_after_format_and_time(run, kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("flows", kept, "--format", "od-csv", "--time", "5:00")
    assert (code, err) == (0, "")
    content = (tmp_path / "od-csv-05-00.csv").read_bytes()
    assert out == f"od-csv-05-00.csv: {len(content):,} bytes\n"
    # Every person has one window at that time, and is somewhere at each of its steps.
    assert matrix_of(content).sum() == pytest.approx(60)


def test_flows_takes_the_busiest_time_and_the_estimate(run, kept, tmp_path):
    result = load_result(kept)
    for options, source in (([], "estimate"), (["--source", "counted"], "counted")):
        path = tmp_path / f"{source}.csv"
        assert run("flows", kept, "--format", "od-csv", "--out", path, *options)[0] == 0
        found = matrix_of(path.read_bytes())
        table = result.table(result.busiest, source)
        assert len(table) > 1
        assert found.sum() == pytest.approx(60)
        for origin, dest, count in zip(table["origin"], table["dest"], table["count"], strict=True):
            assert found[origin, dest] == pytest.approx(count)


def test_flows_to_standard_output_is_the_file_and_nothing_else(kept, capsysbinary):
    code = command_line.main(["flows", str(kept), "--format", "parameters-npz", "--out", "-"])
    out, err = capsysbinary.readouterr()
    assert (code, err) == (0, b"")
    with np.load(io.BytesIO(out), allow_pickle=False) as arrays:
        assert arrays["times"].tolist() == ["05:00", "08:00"]


@pytest.mark.parametrize("key", [key for key in EXPORTS if key not in OF_DRAWS])
def test_flows_knows_every_format_that_people_have(run, kept, tmp_path, key):
    path = tmp_path / "file"
    title = ["--title", "People"] if EXPORTS[key].titled else []
    assert run("flows", kept, "--format", key, "--out", path, *title)[0] == 0
    assert path.stat().st_size > 100
    if key == "html":
        assert "<h1>People</h1>" in path.read_text(encoding="utf-8")


BAD_FLOWS = {
    "nothing": ([], "Give the folder of a result and a --format; --list names the formats"),
    "no folder": (["missing", "--format", "omx"], "no folder missing; learn --save writes one"),
    "no result": ([".", "--format", "omx"], r"result\.json is missing"),
}


@pytest.mark.parametrize(("arguments", "sentence"), BAD_FLOWS.values(), ids=BAD_FLOWS)
def test_flows_of_what_is_not_there(run, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("flows", *arguments)
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), sentence)


def test_a_time_may_be_given_by_the_name_of_before(run, kept):
    words = ["flows", kept, "--format", "od-csv", "--out", "-"]
    code, out, _ = run(*words, "--anchor", "5:00")
    assert (code, out) == run(*words, "--time", "5:00")[:2]
    assert code == 0
    assert out != run(*words, "--time", "8:00")[1]


def test_flows_of_a_time_or_format_that_is_not_there(run, kept, file, tmp_path):
    code, _, err = run("flows", kept, "--format", "omx", "--time", "9:00")
    assert code == 2
    assert_matches(only_sentence(err), "no flows at 09:00; choose one of 05:00, 08:00")
    assert run("flows", kept, "--format", "shapefile")[0] == 2
    whole_day = tmp_path / "day"
    assert run("learn", file, *QUICK, "--save", whole_day)[0] == 0
    code, _, err = run("flows", whole_day, "--format", "flowmap-blue-times")
    assert code == 2
    assert_matches(only_sentence(err), "nothing for flowmap-blue-times; choose another format")


def test_no_library_of_figures_is_loaded_for_a_file(repository, kept):
    program = (
        "import sys; from agg_core.cli.main import main; main(sys.argv[1:])\n"
        "print(*sorted({'plotly', 'pydeck'} & set(sys.modules)), file=sys.stderr)"
    )
    for key, loaded in (("flows-csv", ""), ("html", "")):
        ended = subprocess.run(
            [sys.executable, "-c", program, "flows", str(kept), "--format", key, "--out", "-"],
            cwd=repository, capture_output=True, timeout=120, check=True,
        )  # fmt: skip
        assert ended.stderr.decode().strip() == loaded


def test_flows_of_few_people_are_withheld_on_request(run, kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ["flows", kept, "--time", "5:00", "--source", "counted", "--format", "od-csv"]
    code, _, err = run(*asked, "--least-people", "4")
    assert (code, err) == (0, "")
    limited = matrix_of((tmp_path / "od-csv-05-00-at-least-4-people.csv").read_bytes())
    whole = load_result(kept).matrix("05:00", "counted")
    shown = ~np.isnan(limited)
    assert 0 < shown.sum() < (whole > 0).sum()
    np.testing.assert_allclose(limited[shown], whole[shown])
    assert limited[shown].min() >= 4
    code, _, err = run(*asked, "--round-to", "5", "--out", "rounded.csv")
    assert (code, err) == (0, "")
    assert (matrix_of((tmp_path / "rounded.csv").read_bytes()) % 5 == 0).all()


@pytest.mark.parametrize("limit", [["--least-people", "-1"], ["--round-to", "4"]])
def test_limits_that_are_none_are_refused(run, kept, limit):
    code, out, err = run("flows", kept, "--format", "od-csv", *limit)
    assert (code, out) == (2, "")
    only_sentence(err)
