"""What `agg-core learn` makes of its options and prints of people in groups."""

from dataclasses import fields
from functools import cache
from pathlib import Path

import openmatrix
import pandas as pd
import pytest

from agg_core.base.errors import InputError
from agg_core.base.options import options_of
from agg_core.cli import learn
from agg_core.cli import main as command_line
from agg_core.cli.options import spelt
from agg_core.space.settings import GridSettings, HexSettings, MeshSettings
from agg_core.study.people import ALL_DAY, StudyResult, study_steps
from agg_core.study.settings import LearnSettings, StudySettings, WindowSettings
from agg_core.study.suggest import suggest_grid
from agg_core.tables.flows import compare_flows
from tests.agg_core import tiny
from tests.agg_core.cli.told import DEFAULT, HERE, QUICK, assert_matches, only_sentence, strict_json

FIGURES = ["cpc", "correlation", "precision", "recall", "total_ratio"]


@cache
def by_default():
    """The study of `DEFAULT` by the functions."""
    settings = tiny.settings(noise="auto", strength="auto", iterations=3, replicates=4)
    return tiny.run(tiny.people(), settings)[1]


def test_learn_json_is_one_object_with_the_figures_of_the_study(run, file):
    code, out, err = run("learn", file, *DEFAULT, "--seed", 7, "--json")
    assert (code, err) == (0, "")
    figures = strict_json(out)
    assert {
        "n_individuals", "n_sequences", "n_states", "iterations", "converged", "wall_s",
        "peak_mb", "vs_single", "vs_counted",
    } <= figures.keys()  # fmt: skip
    expected = by_default().summary()
    assert figures.pop("extent") == [139.0, 35.0, 139.3, 35.3]
    assert figures.pop("extent_from") == "stated"
    for varies in ("wall_s", "peak_mb"):
        assert figures.pop(varies) > 0
        expected.pop(varies, None)
    low, high = figures.pop("told_s")
    assert 0 < low < high
    reading = figures.pop("reading")
    rows = len(Path(file).read_text().splitlines()) - 1
    assert (reading["rows_read"], reading["rows_kept"]) == (rows, rows)
    assert figures == expected


@pytest.mark.parametrize("is_terminal", [True, False])
def test_how_long_it_takes_is_told_before_it_begins_at_a_terminal(
    run, file, monkeypatch, is_terminal
):
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    code, _, err = run("learn", file, *QUICK)
    assert code == 0
    assert err.startswith("Takes about a few seconds on this machine.\n") == is_terminal


def test_less_is_told_where_trials_are_known(run, file, tmp_path):
    saved = tmp_path / "saved"
    first = strict_json(run("learn", file, *DEFAULT, "--save", saved, "--json")[1])
    again = strict_json(run("learn", file, *DEFAULT, "--like", saved, "--json")[1])
    assert again["told_s"][1] < first["told_s"][1]


def test_learn_text(run, file):
    code, out, err = run("learn", file, *DEFAULT, "--seed", 7)
    assert (code, err) == (0, "")
    here = by_default()
    fit = here.by_time[0].estimate
    lines = out.splitlines()
    assert lines[0] == "60 people, 480 sequences in 96 groups, 9 states"
    assert lines.pop(1).startswith("learner: sampling, since occupied cells hold 1.2 people")
    assert lines.pop(1) == (
        f"noise allowed for: {here.noise.groups:.1%} of fixes in a neighbour cell by groups, "
        f"{here.noise.single:.1%} by single people: learned"
    )
    assert lines.pop(1) == f"prior of {fit.prior:g} people per cell, since {fit.prior_choice}"
    assert lines[1].startswith("3 iterations in ")
    assert f"more may change where {fit.change / 2:.1%} of the people go" in lines[1]
    told = here.summary()
    assert lines.pop(2) == (
        f"{told['movers']:,.1f} people ({told['movers_low']:,.1f} to {told['movers_high']:,.1f}) "
        "move per 60-minute step, at all times of day together"
    )
    for line, found in zip(lines[2:], (here.vs_single, here.vs_counted), strict=True):
        for name in FIGURES:
            assert f"{name} {getattr(found, name):.3f}" in line


@pytest.mark.parametrize("given", [False, True])
def test_learn_text_tells_the_metres_that_were_allowed_for(run, file, given):
    words = [
        *HERE, "--step", "1h", "--group-size", "1", "--iterations", "3", "--threshold", "2",
        "--replicates", "0", "--seed", 7, "--observed", "positions", "--sigma-m", "2000",
    ]  # fmt: skip
    choice = {"observed": "positions", "sigma_m": 2_000.0, "group_size": 1, "replicates": 0}
    if given:
        words += ["--noise", "given", "--assumed-m", "8000"]
        choice |= {"noise": "given", "assumed_m": 8_000.0}
    else:
        choice |= {"noise": "auto"}
    code, out, err = run("learn", file, *words)
    assert (code, err) == (0, "")
    _, here = tiny.run(tiny.people(), tiny.settings(**choice, iterations=3))
    lines = out.splitlines()
    if given:
        assert lines[2] == "noise allowed for: 8,000 m in positions"
        assert lines[3] == here.noise.told != ""
    else:
        metres = f"{here.noise.single:,.0f} m"
        assert lines[2] == (
            f"noise allowed for: {metres} in positions by groups, {metres} by single people: "
            "learned"
        )


def test_flows_that_are_known_are_compared(run, file, tmp_path):
    """The counted flows of the study are the reference, so that its own figures are right."""
    _, here = tiny.run(tiny.people(), tiny.settings(iterations=3, replicates=4))
    names = here.states.names
    rows = here.rows(ALL_DAY, "counted")
    ends = {end: [names[number] for number in rows[end]] for end in ("origin", "dest")}
    table = pd.DataFrame({**ends, "count": rows["count"]})
    table.to_csv(tmp_path / "known.csv", index=False)
    table.to_parquet(tmp_path / "known.parquet")
    with openmatrix.open_file(str(tmp_path / "known.omx"), "w") as omx:
        omx.create_matrix("counted", obj=here.matrix(ALL_DAY, "counted"))
    ends = here.rows(ALL_DAY).set_index(["origin", "dest"])[["low", "high"]]
    known = rows.loc[(rows["origin"] != rows["dest"]) & (rows["count"] > 5)]
    ends = ends.reindex(pd.MultiIndex.from_frame(known[["origin", "dest"]])).to_numpy()
    inside = (ends[:, 0] - 0.5 <= known["count"]) & (known["count"] <= ends[:, 1] + 0.5)
    held = inside.mean()
    n_stays = int((rows["origin"] == rows["dest"]).sum())
    for name in ("known.csv", "known.parquet", "known.omx"):
        words = [*QUICK, "--replicates", 4, "--seed", 7, "--reference", tmp_path / name]
        code, out, err = run("learn", file, *words, "--json")
        assert (code, err) == (0, "")
        found = strict_json(out)["vs_reference"]
        assert found["cpc"] == pytest.approx(here.vs_counted.cpc)
        assert found["total_ratio"] == pytest.approx(here.vs_counted.total_ratio)
        assert (found["cpc_by_time"], found["n_times"]) == (None, None)
        assert found["coverage_90"] == pytest.approx(held)
        assert found["n_flows"] == sum(
            count > 5 for o, d, count in rows.itertuples(index=False) if o != d
        )
        assert found["set_aside"] == {"stay: origin is dest": n_stays}
    _, text, _ = run("learn", file, *words)
    figures = f"cpc {here.vs_counted.cpc:.3f}, cpc_by_time no meaning"
    assert text.splitlines()[-1].startswith(f"against the reference: {figures}")


def test_a_reference_of_other_cells_is_refused_before_anything_is_learned(
    run, file, tmp_path, monkeypatch
):
    monkeypatch.setattr(learn, "study_steps", None)
    (tmp_path / "known.csv").write_text("origin,dest,count\nx,y,3\n")
    code, out, err = run("learn", file, *QUICK, "--reference", tmp_path / "known.csv")
    assert (code, out) == (2, "")
    assert "the cells are called row 0, column 0, " in only_sentence(err)


def test_learn_text_without_a_meaning(run, file):
    _, out, _ = run("learn", file, *QUICK, "--threshold", "1e6")
    assert "precision no meaning, recall no meaning" in out


@pytest.fixture
def settings_of(file, monkeypatch):
    """The settings that a command line stands for, without the study."""

    def understood(*arguments):
        caught = []

        def catch(_, settings, *_more):
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
        (["--grid", "4x5"], lambda w, s, e, n: GridSettings(w, s, e, n, 4, 5)),
        (["--mesh", "3"], lambda w, s, e, n: MeshSettings(w, s, e, n, 3)),
        (["--h3", "6"], lambda w, s, e, n: HexSettings(w, s, e, n, 6)),
    ],
)
def test_an_extent_that_is_not_stated_is_where_the_data_lie(settings_of, cells, made):
    assert settings_of(*cells).grid == made(*suggest_grid(tiny.people()).bounds)


def test_cells_of_every_kind_can_be_asked_for(settings_of):
    bbox = ("--bbox", "139.1,35.1,139.5,35.5")
    assert settings_of(*bbox, "--mesh", "2").grid == MeshSettings(139.1, 35.1, 139.5, 35.5, 2)
    assert settings_of(*bbox, "--h3", "5").grid == HexSettings(139.1, 35.1, 139.5, 35.5, 5)


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
        LearnSettings(
            3,
            "cells",
            0.1,
            "given",
            0.2,
            250.0,
            "cavity",
            2,
            "given",
            1.5,
            "least_squares",
            12,
            8,
            4.5,
            99,
        ),
    )
    default = StudySettings().to_dict()
    for part, values in chosen.to_dict().items():
        same = {name for name, value in values.items() if value == default[part][name]}
        assert same <= {"observed", "assumed_m", "reach_m"}, (
            "this test must say something about every field"
        )
    assert chosen == settings_of(
        "--bbox", "139.1,35.1,139.2,35.2", "--grid", "5x7", "--step", "20min", "--length", "4",
        "--times", "8:00", "20:00", "--times", "14:20", "--max-gap", "1.5h",
        "--group-size", "3", "--misclassify", "0.1", "--noise", "given", "--assumed", "0.2",
        "--sigma-m", "250", "--inference", "cavity",
        "--observed", "cells", "--calibrate", "2", "--strength", "given", "--prior", "1.5",
        "--start", "least_squares",
        "--iterations", "12", "--replicates", "8", "--threshold", "4.5",
        "--seed", "99",
    )  # fmt: skip


def test_positions_can_be_chosen_on_the_command_line(settings_of):
    words = ("--observed", "positions", "--noise", "given", "--assumed-m", "300")
    learn = settings_of(*words).learn
    assert (learn.observed, learn.noise, learn.assumed_m) == ("positions", "given", 300.0)


def test_a_reach_is_given_in_km_on_the_command_line(settings_of):
    assert settings_of("--reach", "2.2").learn.reach_m == 2200.0
    assert settings_of().learn.reach_m is None


def test_an_extent_may_begin_with_a_western_longitude(settings_of):
    """argparse takes a value that begins with a minus for an option unless it is told not to."""
    expected = GridSettings(-74.1, 40.6, -73.9, 40.8)
    assert settings_of("--bbox=-74.1,40.6,-73.9,40.8").grid == expected
    assert settings_of("--bbox", "-74.1,40.6,-73.9,40.8").grid == expected


def test_help_has_an_entry_for_every_setting(run):
    code, out, _ = run("learn", "--help")
    assert code == 0
    for f in fields(LearnSettings):
        assert spelt(f.name) in out
    words = " ".join(out.split())
    for name, option in options_of(LearnSettings).items():
        assert " ".join(option.help.split()) in words, name


BAD_CHOICES = {
    "outside the extent": (
        ["--bbox", "2.0,48.0,3.0,49.0"],
        r"^No fix lies inside the extent 2, 48, 3, 49; the data span .* choose an extent",
    ),
    "group too large": (
        [*HERE, "--step", "1h", "--group-size", "61"],
        r"^The group size M = 61 is larger than the 60 people .*; choose a smaller M",
    ),
    "no rows of cells": (["--grid", "0x5"], r"^Rows must lie between 1 and 100; it was 0\.$"),
    "no columns of cells": (["--grid", "5x0"], r"^Columns must lie between 1 and 100; it was 0"),
    "wide grid": (["--grid", "5x101"], r"^Columns must lie between 1 and 100; it was 101"),
    "reversed extent": (["--bbox", "3,2,1,4"], r"^The extent is empty: west 3.* east 1"),
    "extent off the globe": (["--bbox", "0,0,1,99"], r"^North must lie between -90 and 90 °"),
    "no number": (["--misclassify", "nan"], r"^Chance of being counted next door must lie between"),
    "group of none": (["--group-size", "0"], r"^Group size, M must lie between 1 and"),
    "step that cuts no day": (
        [*HERE, "--step", "7min"],
        r"^The step must .*divide a day evenly, such as 20min",
    ),
    "window between steps": (
        [*HERE, "--step", "1h", "--times", "08:10"],
        r"^The start 08:10 is not on a border of bins of 60 min",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("options", "sentence"), BAD_CHOICES.values(), ids=BAD_CHOICES)
def test_choices_that_cannot_be_used(run, file, options, sentence):
    code, out, err = run("learn", file, *options)
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), sentence)


MISSPELT = {
    "extent": (["--bbox", "1,2,3"], "Give the extent as WEST,SOUTH,EAST,NORTH in degrees"),
    "grid": (["--grid", "5by5"], "Give the grid as ROWSxCOLS, for example 14x16"),
    "endless grid": (["--grid", "5x" + "9" * 400], "Give the grid as ROWSxCOLS"),
    "time": (["--times", "25:00"], "Give a time of day as HH:MM between 00:00 and 23:59"),
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


def test_learn_overwrites_no_folder(run, file, tmp_path):
    code, out, err = run("learn", file, *QUICK, "--save", tmp_path)
    assert (code, out) == (2, "")
    assert_matches(only_sentence(err), "exists already; give --save a new folder")


TOKYO = [
    "--where", "full_day=1", "--bbox", "139.68,35.65,139.80,35.75", "--grid", "10x10",
    "--step", "20min", "--length", "3", "--misclassify", "0.05", "--noise", "given",
    "--inference", "cfb", "--iterations", "60", "--replicates", "0", "--threshold", "35",
    "--seed", "0", "--json",
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


def test_learn_without_an_extent_says_which_one_it_took(run, file):
    west, south, east, north = suggest_grid(tiny.people()).bounds
    options = ["--grid", "3x3", *QUICK[4:]]
    code, out, _ = run("learn", file, *options)
    assert code == 0
    assert out.startswith(f"extent {west:g},{south:g},{east:g},{north:g} ")
    told = strict_json(run("learn", file, *options, "--json")[1])
    assert (told["extent"], told["extent_from"]) == ([west, south, east, north], "data")


CFB = [*DEFAULT, "--noise", "given", "--replicates", "0", "--inference", "cfb"]


def test_a_reach_in_km_leaves_out_who_went_farther_and_says_so(run, file, tmp_path):
    words = [*CFB, "--reach", "21"]
    code, out, err = run("learn", file, *words, "--json", "--save", tmp_path / "saved")
    assert (code, err) == (0, "")
    figures = strict_json(out)
    assert figures["reach_m"] == 21_000.0
    beyond = figures["beyond_reach"]
    assert 0 < beyond < 480
    assert figures["n_sequences"] == 480 - beyond
    assert sum(figures["dropped"].values()) == beyond
    code, out, err = run("learn", file, *words)
    assert (code, err) == (0, "")
    assert f"{beyond:,} of 480" in out.splitlines()[1]
    for key in ("od-csv", "flows-csv", "parameters-csv"):
        path = tmp_path / key
        assert run("flows", tmp_path / "saved", "--format", key, "--out", path)[0] == 0
    table = pd.read_csv(tmp_path / "od-csv", index_col=0)
    assert table.shape == (9, 9)
    assert table.loc["row 0, column 0", "row 2, column 2"] == 0.0


def test_a_reach_nobody_can_be_learned_within_is_one_sentence(run, file):
    refusals = [
        ["--reach", "0"], ["--reach", "near"], ["--reach", "20", "--inference", "cavity"],
        ["--reach", "20", "--observed", "positions"],
    ]  # fmt: skip
    for words in refusals:
        code, out, err = run("learn", file, *HERE, *words)
        assert (code, out) == (2, "")
        assert "Traceback" not in err


def test_flows_within_a_reach_are_those_of_the_functions(run, file):
    words = [*CFB, "--reach", "500"]
    figures = strict_json(run("learn", file, *words, "--json")[1])
    free = strict_json(run("learn", file, *words[:-2], "--json")[1])
    assert figures["beyond_reach"] == 0
    assert figures["movers"] == pytest.approx(free["movers"], rel=1e-9)
    assert figures["vs_counted"]["cpc"] == pytest.approx(free["vs_counted"]["cpc"], rel=1e-9)
