import csv
import io
import json
import subprocess
import sys
from dataclasses import fields, replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from shapely.geometry import box

from agg_core.base.errors import InputError
from agg_core.base.options import options_of
from agg_core.cli import bench, learn
from agg_core.cli import main as command_line
from agg_core.exports import EXPORTS
from agg_core.io import read_trajectories
from agg_core.lab.accuracy import error_by_groups
from agg_core.lab.experiments import EXPERIMENTS
from agg_core.space.grid import Grid
from agg_core.space.settings import GridSettings, HexSettings, MeshSettings
from agg_core.store.codec import load_result
from agg_core.study.people import ALL_DAY, StudyResult, study_steps
from agg_core.study.settings import LearnSettings, StudySettings, WindowSettings
from agg_core.study.suggest import suggest_grid
from agg_core.tables.flows import compare_flows
from agg_core.tables.sequences import cell_counts
from tests.agg_core import tiny

HERE = ["--bbox", "139.0,35.0,139.3,35.3", "--grid", "3x3"]
QUICK = [*HERE, "--step", "1h", "--group-size", "5", "--iterations", "3", "--threshold", "2"]
FIGURES = ["cpc", "correlation", "precision", "recall", "total_ratio"]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "people.csv"
    tiny.frame(tiny.day_states()).to_csv(path, index=False)
    return str(path)


@pytest.fixture
def run(capsys):
    """Run a command; its exit code, what it printed, and what it complained of."""

    def execute(*arguments):
        try:
            code = command_line.main([str(a) for a in arguments])
        except SystemExit as ended:
            code = ended.code
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return execute


def strict_json(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    assert text.count("\n") == 1
    return json.loads(text, parse_constant=refuse)


# ---------------------------------------------------------------- inspect


def test_inspect_tells_what_the_file_holds(run, file):
    code, out, err = run("inspect", file)
    assert (code, err) == (0, "")
    told = dict(line.split("  ", 1) for line in out.splitlines() if "  " in line.strip())
    told = {label.strip(): value.strip() for label, value in told.items()}
    assert told["Rows read"] == told["Rows kept"] == "1,440"
    assert told["Rows set aside"] == "0"
    assert told["Individuals"] == "60"
    assert told["First fix"] == "2024-05-01 00:10:00 UTC"
    assert told["Last fix"] == "2024-05-01 23:10:00 UTC"


def test_inspect_json(run, tmp_path):
    path = tmp_path / "few.csv"
    path.write_text(
        "user_id,time,lon,lat\n"
        "a,2024-05-01T09:00:00+09:00,139.5,35.5\n"
        "a,2024-05-01T10:00:00+09:00,139.75,35.25\n"
        "b,2024-05-02T09:00:00+09:00,not known,35.5\n"
        "b,2024-05-02T09:30:00+09:00,139.6,35.6\n"
    )
    code, out, err = run("inspect", path, "--json")
    report = strict_json(out)
    assert (code, err) == (0, "")
    assert {"rows_read", "rows_kept", "set_aside", "guesses", "individuals"} <= report.keys()
    assert (report["rows_read"], report["rows_kept"], report["individuals"]) == (4, 3, 2)
    assert sum(report["set_aside"].values()) == 1
    assert pd.Timestamp(report["first_utc"]) == pd.Timestamp("2024-05-01T00:00Z")
    assert pd.Timestamp(report["last_utc"]) == pd.Timestamp("2024-05-02T00:30Z")
    assert report["bbox"] == [139.5, 35.25, 139.75, 35.6]
    assert all("value" in guess for guess in report["guesses"].values())


def test_inspect_rows_prints_canonical_csv(run, tmp_path):
    path = tmp_path / "own.tsv"
    path.write_text(
        "who\twhen\tlatitude\tlongitude\tkind\n"
        '"x, y"\t2024-05-01 09:00:00\t35.5\t139.25\t1\n'
        '"x, y"\t2024-05-01 09:00:01.5\t35.5\t-0.125\t1\n'
        "z\t2024-05-01 09:00:00\t35.5\t139.25\t2\n"
        "w\t2024-05-01 23:00:00\t35.5\t139.25\t1\n"
    )
    code, out, err = run(
        "inspect", path, "--rows", "3", "--tz", "Asia/Tokyo", "--where", "kind=1",
        "--column", "user_id=who", "--column", "time=1",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert list(csv.reader(io.StringIO(out))) == [
        ["user_id", "time", "lon", "lat"],
        ["x, y", "2024-05-01T00:00:00Z", "139.25", "35.5"],
        ["x, y", "2024-05-01T00:00:01.500000Z", "-0.125", "35.5"],
        ["w", "2024-05-01T14:00:00Z", "139.25", "35.5"],
    ]
    assert "\r" not in out


@pytest.mark.parametrize(("n", "lines"), [(0, 1), (1, 2), (5, 6), (10**6, 1441)])
def test_inspect_prints_as_many_rows_as_asked_or_there_are(run, file, n, lines):
    _, out, _ = run("inspect", file, "--rows", n)
    assert len(out.splitlines()) == lines


def test_canonical_rows_read_back_as_they_are(run, file, tmp_path):
    _, first, _ = run("inspect", file, "--rows", "40")
    (tmp_path / "again.csv").write_text(first)
    _, second, _ = run("inspect", tmp_path / "again.csv", "--rows", "40")
    assert second == first


# ---------------------------------------------------------------- learn


def test_learn_json_is_one_object_with_the_figures_of_the_study(run, file):
    code, out, err = run("learn", file, *QUICK, "--seed", 7, "--json")
    assert (code, err) == (0, "")
    figures = strict_json(out)
    assert {
        "n_individuals", "n_sequences", "n_states", "iterations", "converged", "wall_s",
        "peak_mb", "vs_single", "vs_counted",
    } <= figures.keys()  # fmt: skip
    _, here = tiny.run(tiny.people(), tiny.settings(iterations=3))
    expected = here.summary()
    assert figures.pop("extent") == [139.0, 35.0, 139.3, 35.3]
    assert figures.pop("extent_from") == "stated"
    for varies in ("wall_s", "peak_mb"):
        assert figures.pop(varies) > 0
        expected.pop(varies, None)
    assert figures == expected


def test_learn_text(run, file):
    code, out, err = run("learn", file, *QUICK, "--seed", 7)
    assert (code, err) == (0, "")
    _, here = tiny.run(tiny.people(), tiny.settings(iterations=3))
    lines = out.splitlines()
    assert lines[0] == "60 people, 480 sequences in 96 groups, 9 states"
    assert lines.pop(1).startswith("learner: sampling, since occupied cells hold 1.2 people")
    assert lines[1].startswith("3 iterations in ")
    assert lines[1].endswith("not converged: the limit ended it")
    for line, found in zip(lines[2:], (here.vs_single, here.vs_counted), strict=True):
        for name in FIGURES:
            assert f"{name} {getattr(found, name):.3f}" in line


def test_learn_text_without_a_meaning(run, file):
    _, out, _ = run("learn", file, *QUICK, "--threshold", "1e6")
    assert "precision no meaning, recall no meaning" in out


@pytest.fixture
def settings_of(file, monkeypatch):
    """The settings that a command line stands for, without the study."""

    def understood(*arguments):
        caught = []

        def catch(_, settings):
            caught.append(settings)
            raise InputError("caught")

        monkeypatch.setattr(learn, "study_steps", catch)
        assert command_line.main(["learn", file, *map(str, arguments)]) == 2
        return caught[0]

    return understood


def test_without_options_the_command_line_has_the_defaults_of_the_settings(settings_of):
    assert settings_of() == StudySettings(suggest_grid(tiny.people()))


@pytest.mark.parametrize(
    ("cells", "made"),
    [
        ([], GridSettings),
        (["--grid", "4x5"], lambda *bounds: GridSettings(*bounds, 4, 5)),
        (["--mesh", "3"], lambda *bounds: MeshSettings(*bounds, 3)),
        (["--h3", "6"], lambda *bounds: HexSettings(*bounds, 6)),
    ],
)
def test_an_extent_that_is_not_stated_is_where_the_data_lie(settings_of, cells, made):
    assert settings_of(*cells).grid == made(*suggest_grid(tiny.people()).bounds)


def test_cells_of_every_kind_can_be_asked_for(settings_of):
    bbox = ("--bbox", "139.1,35.1,139.5,35.5")
    assert settings_of(*bbox, "--mesh", "2").grid == MeshSettings(139.1, 35.1, 139.5, 35.5, 2)
    assert settings_of(*bbox, "--h3", "5").grid == HexSettings(139.1, 35.1, 139.5, 35.5, 5)


@pytest.fixture
def areas_file(tmp_path):
    zones = gpd.GeoDataFrame(
        {"zone": ["西", "東", "far"], "no": [1, 1, 2]},
        geometry=[box(139, 35, 139.2, 35.3), box(139.15, 35, 139.3, 35.3), box(150, 50, 151, 51)],
        crs="EPSG:4326",
    )
    path = tmp_path / "zones.gpkg"
    zones.to_crs("EPSG:6677").to_file(path)
    return path


def test_areas_of_a_file_can_be_asked_for(settings_of, areas_file):
    grid = settings_of("--polygons", areas_file).grid
    assert grid.names == ("西", "東", "far")
    assert grid.file == "zones.gpkg"
    assert grid.column == "zone"
    assert grid.bounds == pytest.approx((139, 35, 151, 51), abs=0.01)
    near = settings_of("--polygons", areas_file, "--bbox", "139,35,139.3,35.3", "--name", "no")
    assert near.grid.names == ("1",)


def test_areas_are_told_with_what_was_guessed(run, file, areas_file):
    areas = ["--polygons", areas_file, *QUICK[4:]]
    _, out, _ = run("learn", file, *areas, "--json")
    said = strict_json(out)["areas"]
    assert said["crs"] == "EPSG:6677"
    assert said["guesses"]["name"] == {"value": "zone", "alternatives": ["no", ""]}
    assert said["overlaps"] == [["西", "東", pytest.approx(1 / 3, abs=1e-3)]]
    assert strict_json(out)["n_states"] == 3
    _, out, _ = run("learn", file, *areas)
    assert out.startswith("3 rows, read as EPSG:6677, named by zone (or: no, each row by itself).")
    assert "西 and 東 overlap by 33.3% of the smaller: the first in the file holds" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--mesh", "2", "--bbox", "2,48,3,49"], "Japan"),
        (["--h3", "16"], "between 0 and 15"),
        (["--h3", "12"], "at most 10,000"),
        (["--name", "x"], "go with --polygons"),
        (["--polygons", "missing.gpkg"], "cannot be opened"),
        (["--polygons", "AREAS", "--name", "x"], "(--name COLUMN)"),
        (["--polygons", "AREAS", "--polygons-crs", "JGD"], "(--polygons-crs EPSG:CODE)"),
        (["--polygons", "AREAS", "--bbox", "1,1,2,2"], "None of the areas"),
    ],
)
def test_cells_that_cannot_be_made_are_one_sentence(run, file, areas_file, arguments, sentence):
    given = [areas_file if a == "AREAS" else a for a in arguments]
    code, out, err = run("learn", file, *given)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_every_setting_can_be_given_on_the_command_line(settings_of):
    chosen = StudySettings(
        GridSettings(139.1, 35.1, 139.2, 35.2, 5, 7),
        WindowSettings(20, 4, ("08:00", "20:00", "14:20"), 90),
        LearnSettings(3, "blocks", 0.1, 250.0, "cavity", 2, 1.5, "moments", 12, 4.5, 99),
    )
    default = StudySettings().to_dict()
    for part, values in chosen.to_dict().items():
        same = {name for name, value in values.items() if value == default[part][name]}
        assert same <= {"observed"}, "this test must say something about every field"
    assert chosen == settings_of(
        "--bbox", "139.1,35.1,139.2,35.2", "--grid", "5x7", "--step", "20min", "--length", "4",
        "--anchor", "8:00", "20:00", "--anchor", "14:20", "--max-gap", "1.5h",
        "--group-size", "3", "--misclassify", "0.1", "--sigma-m", "250", "--inference", "cavity",
        "--observed", "blocks", "--calibrate", "2", "--prior", "1.5", "--start", "moments",
        "--iterations", "12", "--threshold", "4.5",
        "--seed", "99",
    )  # fmt: skip


def test_positions_can_be_chosen_on_the_command_line(settings_of):
    assert settings_of("--observed", "positions").learn.observed == "positions"


def test_an_extent_may_begin_with_a_western_longitude(settings_of):
    """argparse takes a value that begins with a minus for an option unless it is told not to."""
    expected = GridSettings(-74.1, 40.6, -73.9, 40.8)
    assert settings_of("--bbox=-74.1,40.6,-73.9,40.8").grid == expected
    assert settings_of("--bbox", "-74.1,40.6,-73.9,40.8").grid == expected


def test_help_has_an_entry_for_every_setting(run):
    code, out, _ = run("learn", "--help")
    assert code == 0
    for f in fields(LearnSettings):
        assert "--" + f.name.replace("_", "-") in out
    words = " ".join(out.split())
    for name, option in options_of(LearnSettings).items():
        assert " ".join(option.help.split()) in words, name


# ---------------------------------------------------------------- input that cannot be used


def text_file(tmp_path, text):
    path = tmp_path / "given.csv"
    path.write_text(text)
    return path


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


def only_sentence(err):
    """The one sentence on stderr, without the name of the program."""
    assert err.startswith("agg-core: ")
    assert err.endswith("\n")
    assert "Traceback" not in err
    sentence = err.removeprefix("agg-core: ").removesuffix("\n")
    assert tiny.is_one_sentence(sentence)
    return sentence


@pytest.mark.parametrize("command", ["inspect", "learn"])
@pytest.mark.parametrize(("text", "sentence"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_that_cannot_be_used(run, tmp_path, command, text, sentence):
    code, out, err = run(command, text_file(tmp_path, text))
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), sentence)


def assert_matches(text, pattern):
    with pytest.raises(InputError, match=pattern):
        raise InputError(text)


@pytest.mark.parametrize("command", ["inspect", "learn"])
def test_a_missing_file_and_a_folder(run, tmp_path, command):
    code, out, err = run(command, tmp_path / "missing.csv")
    assert (code, out) == (2, "")
    assert "missing.csv" in only_sentence(err)
    code, out, err = run(command, tmp_path)
    assert (code, out) == (2, "")
    only_sentence(err)


BAD_CHOICES = {
    "outside the extent": (
        ["--bbox", "2.0,48.0,3.0,49.0"],
        r"^No fix lies inside the extent 2, 48, 3, 49; the data span .* choose an extent",
    ),
    "group too large": (
        [*HERE, "--step", "1h", "--group-size", "61"],
        r"^The group size M = 61 is larger than the 60 people .*; choose a smaller M",
    ),
    "no rows of blocks": (["--grid", "0x5"], r"^Rows must lie between 1 and 100; it was 0\.$"),
    "no columns of blocks": (["--grid", "5x0"], r"^Columns must lie between 1 and 100; it was 0"),
    "wide grid": (["--grid", "5x101"], r"^Columns must lie between 1 and 100; it was 101"),
    "reversed extent": (["--bbox", "3,2,1,4"], r"^The extent is empty: west 3.* east 1"),
    "extent off the globe": (["--bbox", "0,0,1,99"], r"^North must lie between -90 and 90 °"),
    "no number": (["--misclassify", "nan"], r"^Chance of a neighbour block must lie between"),
    "group of none": (["--group-size", "0"], r"^Group size, M must lie between 1 and"),
    "step that cuts no day": (
        [*HERE, "--step", "7min"],
        r"^The step must .*divide a day evenly, such as 20min",
    ),
    "window between steps": (
        [*HERE, "--step", "1h", "--anchor", "08:10"],
        r"^The start 08:10 is not on a border of bins of 60 min",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("options", "sentence"), BAD_CHOICES.values(), ids=BAD_CHOICES)
def test_choices_that_cannot_be_used(run, file, options, sentence):
    code, out, err = run("learn", file, *options)
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), sentence)


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


MISSPELT = {
    "extent": (["--bbox", "1,2,3"], "Give the extent as WEST,SOUTH,EAST,NORTH in degrees"),
    "grid": (["--grid", "5by5"], "Give the grid as ROWSxCOLS, for example 14x16"),
    "endless grid": (["--grid", "5x" + "9" * 400], "Give the grid as ROWSxCOLS"),
    "anchor": (["--anchor", "25:00"], "Give a time of day as HH:MM between 00:00 and 23:59"),
    "step": (["--step", "soon"], "Give a whole number of minutes, for example 30min or 1h"),
    "gap": (["--max-gap", "0"], "Give a whole number of minutes, for example 30min or 1h"),
    "number": (["--group-size", "many"], "invalid int value: 'many'"),
    "learner": (["--inference", "magic"], "choose from"),
    "option": (["--colour", "red"], "unrecognized arguments: --colour red"),
}


@pytest.mark.parametrize(("options", "sentence"), MISSPELT.values(), ids=MISSPELT)
def test_misspelt_options_are_usage_errors_with_the_sentence(run, file, options, sentence):
    code, out, err = run("learn", file, *options)
    assert (code, out) == (2, "")
    assert err.startswith("usage: ")
    assert sentence in err.splitlines()[-1]
    assert "Traceback" not in err


@pytest.mark.parametrize("arguments", [[], ["fly"], ["inspect"], ["learn"]], ids=str)
def test_commands_that_are_no_commands(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "error: " in err.splitlines()[-1]


# ---------------------------------------------------------------- as a program


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


# ---------------------------------------------------------------- flows of a saved result


@pytest.fixture(scope="module")
def kept(file, tmp_path_factory):
    """A folder that learn --save wrote, with two times of day."""
    folder = tmp_path_factory.mktemp("kept") / "run"
    arguments = ["learn", file, *QUICK, "--anchor", "05:00", "08:00", "--save", str(folder)]
    assert command_line.main(arguments) == 0
    return folder


def test_learn_saves_what_it_learned(kept, file):
    result = load_result(kept)
    assert [a.anchor for a in result.anchors] == ["05:00", "08:00"]
    assert result.settings.learn.group_size == 5
    assert result.n_individuals == 60


def test_learn_overwrites_no_folder(run, file, tmp_path):
    code, out, err = run("learn", file, *QUICK, "--save", tmp_path)
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), "exists already; give --save a new folder")


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


def test_flows_writes_a_file_named_after_format_and_anchor(run, kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("flows", kept, "--format", "od-csv", "--anchor", "5:00")
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
        assert found.sum() == pytest.approx(60)
        for origin, dest, count in zip(table["origin"], table["dest"], table["count"], strict=True):
            assert found[origin, dest] == pytest.approx(count)


def test_flows_to_standard_output_is_the_file_and_nothing_else(kept, capsysbinary):
    code = command_line.main(["flows", str(kept), "--format", "parameters-npz", "--out", "-"])
    out, err = capsysbinary.readouterr()
    assert (code, err) == (0, b"")
    with np.load(io.BytesIO(out), allow_pickle=False) as arrays:
        assert arrays["anchors"].tolist() == ["05:00", "08:00"]


@pytest.mark.parametrize("key", EXPORTS)
def test_flows_knows_every_format(run, kept, tmp_path, key):
    path = tmp_path / "file"
    title = ["--title", "People"] if EXPORTS[key].titled else []
    assert run("flows", kept, "--format", key, "--out", path, *title)[0] == 0
    assert path.stat().st_size > 100
    if key == "html":
        assert "<h1>People, " in path.read_text(encoding="utf-8")


BAD_FLOWS = {
    "nothing": ([], "Give the folder of a result and a --format; --list names the formats"),
    "no folder": (["missing", "--format", "omx"], "no folder missing; learn --save writes one"),
    "no result": ([".", "--format", "omx"], "damaged or incomplete"),
}


@pytest.mark.parametrize(("arguments", "sentence"), BAD_FLOWS.values(), ids=BAD_FLOWS)
def test_flows_of_what_is_not_there(run, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("flows", *arguments)
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), sentence)


def test_flows_of_a_time_or_format_that_is_not_there(run, kept, file, tmp_path):
    code, _, err = run("flows", kept, "--format", "omx", "--anchor", "9:00")
    assert code == 2
    assert_matches(only_sentence(err), "no windows at 09:00; choose one of 05:00, 08:00")
    assert run("flows", kept, "--format", "shapefile")[0] == 2
    whole_day = tmp_path / "day"
    assert run("learn", file, *QUICK, "--save", whole_day)[0] == 0
    code, _, err = run("flows", whole_day, "--format", "flowmap-blue-times")
    assert code == 2
    assert_matches(only_sentence(err), "nothing for flowmap-blue-times; choose another format")


def test_drawing_is_loaded_only_when_it_is_asked_for(repository, kept):
    program = (
        "import sys; from agg_core.cli.main import main; main(sys.argv[1:])\n"
        "print(*sorted({'plotly', 'pydeck'} & set(sys.modules)), file=sys.stderr)"
    )
    for key, loaded in (("flows-csv", ""), ("html", "plotly pydeck")):
        ended = subprocess.run(
            [sys.executable, "-c", program, "flows", str(kept), "--format", key, "--out", "-"],
            cwd=repository, capture_output=True, timeout=120, check=True,
        )  # fmt: skip
        assert ended.stderr.decode().strip() == loaded


# ---------------------------------------------------------------- real people

TOKYO = [
    "--where", "full_day=1", "--bbox", "139.68,35.65,139.80,35.75", "--grid", "10x10",
    "--step", "20min", "--length", "3", "--misclassify", "0.05", "--inference", "cfb",
    "--iterations", "60", "--threshold", "35", "--seed", "0", "--json",
]  # fmt: skip


@pytest.fixture
def results(monkeypatch):
    """The results of the studies that the command line runs."""
    seen = []

    def watch(*arguments):
        for step in study_steps(*arguments):
            seen.append(step)
            yield step

    monkeypatch.setattr(learn, "study_steps", watch)
    return lambda: [step for step in seen if isinstance(step, StudyResult)]


def test_tokyo_in_groups(run, results, shared_data):
    """Groups of 20 invent movement, smaller ones less; another implementation found the same."""
    path = shared_data / "tokyo_people_flow" / "tokyo_1000users_20min.csv"
    counted = {}
    for group_size in (20, 5):
        code, out, err = run("learn", path, *TOKYO, "--group-size", group_size)
        assert (code, err) == (0, "")
        figures = strict_json(out)
        assert figures["n_individuals"] == 546
        assert figures["n_sequences"] == 5460
        assert figures["n_states"] == 100
        counted[group_size] = figures["vs_counted"]
    assert 1.45 <= counted[20]["total_ratio"] <= 1.75
    assert 0.66 <= counted[20]["cpc"] <= 0.76
    assert 1.10 <= counted[5]["total_ratio"] <= 1.28
    assert 0.82 <= counted[5]["cpc"] <= 0.88
    for result in results():
        single = compare_flows(result.matrix(ALL_DAY, "single"), result.matrix(ALL_DAY, "counted"))
        assert single.cpc > max(counted[5]["cpc"], counted[20]["cpc"])
    assert len(results()) == 2


# ---------------------------------------------------------------- bench accuracy


@pytest.fixture
def tiny_presets(monkeypatch):
    """Presets that take no time, the quick ones of two seeds and the full ones of three."""
    for name, experiment in EXPERIMENTS.items():
        quick = replace(
            experiment.quick, n_states=(3,), group_sizes=(1, 4), n_individuals=(40,), lengths=(3,),
            n_seeds=2, iterations=2,
        )  # fmt: skip
        full = replace(quick, n_seeds=3)
        monkeypatch.setitem(EXPERIMENTS, name, replace(experiment, quick=quick, full=full))
    monkeypatch.setattr(
        bench, "error_by_groups", lambda: error_by_groups((2,), (20, 80), n_seeds=2)
    )


def test_accuracy_gives_every_experiment_as_one_json_object(run, tiny_presets):
    code, out, err = run("bench", "accuracy", "--quick", "--json")
    assert (code, err) == (0, "")
    figures = strict_json(out)
    assert list(figures["experiments"]) == list(EXPERIMENTS)
    assert {e["settings"]["n_seeds"] for e in figures["experiments"].values()} == {2}
    assert {row["learner"] for row in figures["experiments"]["fig7"]["final"]} >= {"cfb", "prox"}
    assert figures["least_squares"][0]["group_size"] == 2


def test_accuracy_of_one_experiment_as_text(run, tiny_presets):
    code, out, err = run("bench", "accuracy", "--experiment", "fig4")
    assert (code, err) == (0, "")
    assert out.startswith("fig4: Gaussian observations")
    assert "\n3 seeds, 2 iterations" in out
    assert "fig3" not in out
    assert "least squares" not in out


def test_accuracy_tells_where_it_is_to_a_terminal_alone(run, tiny_presets, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    code, out, err = run("bench", "accuracy", "--quick", "--experiment", "fig3")
    assert code == 0
    assert "fig3: 7 of 8 runs, d = 3, M = 4, Cavity CFB, seed 1" in err
    assert "runs" not in out


@pytest.mark.parametrize(
    "arguments", [["bench"], ["bench", "speed"], ["bench", "accuracy", "--experiment", "fig8"]]
)
def test_bench_knows_what_it_measures(run, arguments):
    assert run(*arguments)[0] == 2


def test_counts_of_a_file_by_cell_and_step(run, tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(
        "user_id,time,lon,lat\n"
        "a,2024-02-01 09:00,139.1,35.1\na,2024-02-01 09:20,139.9,35.9\n"
        "b,2024-02-01 09:10,139.9,35.9\nb,2024-02-01 09:40,139.1,35.1\n,2024-02-01 10:00,139,35\n"
    )
    options = ["--bbox", "139,35,140,36", "--grid", "2x2", "--tz", "Asia/Tokyo"]
    code, out, err = run("counts", file, *options)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "time,cell,count",
        "2024-02-01 09:00:00,3,2",
        "2024-02-01 09:30:00,0,1",
    ]
    code, out, _ = run("counts", file, *options, "--json")
    assert json.loads(out) == {
        "rows_read": 5, "set_aside": {"missing user id": 1}, "timezone": "Asia/Tokyo",
        "individuals": 2, "counts": 2, "extent": [139, 35, 140, 36], "extent_from": "stated",
    }  # fmt: skip


PARIS = "user_id,time,lon,lat\n" + "".join(
    f"{person},2024-02-01 {hour:02d}:10,{2.2 + person / 50},{48.8 + hour / 200}\n"
    for person in range(9) for hour in range(12)
)  # fmt: skip
"""Nine people far from every default."""
CELLS = {
    "rectangle": (["--grid", "3x4"], lambda bounds: Grid.from_bbox(*bounds, 3, 4)),
    "h3": (["--h3", "6"], lambda bounds: Grid.from_h3(6, bounds)),
}


@pytest.mark.parametrize("kind", CELLS)
def test_counts_without_an_extent_are_where_the_data_lie(run, tmp_path, kind):
    file = text_file(tmp_path, PARIS)
    options, made = CELLS[kind]
    trajectories = read_trajectories(file)
    extent = suggest_grid(trajectories).bounds
    grid = made(extent)
    code, out, err = run("counts", file, *options, "--step", "1h")
    assert code == 0
    found = pd.read_csv(io.StringIO(out), parse_dates=["time"])
    expected = cell_counts(trajectories, grid, "1h", "1us")
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert (found["cell"] < grid.n_cells).mean() > 0.9
    stated = ",".join(f"{side:.10g}" for side in grid.bounds)
    assert err.startswith(f"extent {stated} ")
    told = strict_json(run("counts", file, *options, "--json")[1])
    assert (told["extent"], told["extent_from"]) == (list(grid.bounds), "data")


def test_learn_without_an_extent_says_which_one_it_took(run, file):
    west, south, east, north = suggest_grid(tiny.people()).bounds
    options = ["--grid", "3x3", *QUICK[4:]]
    code, out, _ = run("learn", file, *options)
    assert code == 0
    assert out.startswith(f"extent {west:g},{south:g},{east:g},{north:g} ")
    told = strict_json(run("learn", file, *options, "--json")[1])
    assert (told["extent"], told["extent_from"]) == ([west, south, east, north], "data")


@pytest.mark.parametrize("command", ["counts", "learn"])
@pytest.mark.parametrize("cells", [["--grid", "3x3"], ["--mesh", "2"], ["--h3", "5"]])
def test_a_stated_extent_that_holds_nobody_is_refused(run, tmp_path, command, cells):
    file = text_file(tmp_path, PARIS)
    code, out, err = run(command, file, "--bbox", "139,35,140,36", *cells)
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), r"the data span 2\.2, 48\.8, 2\.36, 48\.855 \(west")


def test_areas_that_hold_nobody_are_refused(run, tmp_path, areas_file):
    code, out, err = run("counts", text_file(tmp_path, PARIS), "--polygons", areas_file)
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), "No fix lies inside")


@pytest.mark.parametrize("extent", [[], ["--bbox", "2,48,3,49"]])
def test_counts_of_no_row_are_refused(run, tmp_path, extent):
    code, out, err = run("counts", text_file(tmp_path, PARIS), *extent, "--where", "user_id=none")
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), "^No row is left")


def test_trips_as_a_table(run, tmp_path):
    file = tmp_path / "trips.csv"
    file.write_text(
        "ride_id,started_at,ended_at,start_station_id,end_station_id\n"
        "1,2024-02-01 09:00,2024-02-01 09:10,S1,S2\n2,2024-02-01 09:20,2024-02-01 09:40,S1,S2\n"
    )
    code, out, _ = run("trips", file)
    assert (code, out) == (0, "time,origin,dest,count\n2024-02-01 09:00:00,S1,S2,2\n")
    code, out, err = run("inspect", file)
    assert (code, out) == (2, "")
    assert "origin-destination table" in err


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ([], "2019-02-01T08:00:00Z"),
        (["--date-order", "month"], "2019-01-02T08:00:00Z"),
        (["--time-format", "month/day/year"], "2019-01-02T08:00:00Z"),
        (["--tz", "Asia/Tokyo"], "2019-01-31T23:00:00Z"),
        (["--swap-axes"], "2019-02-01T08:00:00Z"),
    ],
)
def test_what_the_person_says_of_the_file(run, tmp_path, options, first):
    file = tmp_path / "dates.csv"
    file.write_text("user_id,time,lon,lat\na,01/02/2019 08:00,12.5,35.6\n")
    code, out, _ = run("inspect", file, "--rows", "1", *options)
    place = "35.6,12.5" if "--swap-axes" in options else "12.5,35.6"
    assert (code, out.splitlines()[1]) == (0, f"a,{first},{place}")


def test_two_words_for_one_thing(run, tmp_path):
    file = tmp_path / "dates.csv"
    file.write_text("user_id,time,lon,lat\na,01/02/2019 08:00,139.5,35.6\n")
    options = ["--date-order", "day", "--time-format", "year-month-day"]
    code, _, err = run("inspect", file, *options)
    assert code == 2
    assert "give one of them" in only_sentence(err)
