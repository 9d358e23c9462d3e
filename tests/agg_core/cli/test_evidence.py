"""Evidence on a saved result and what changed in it, from the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from shapely.geometry import LineString, box, mapping

from agg_core.evidence.asking import counters_for, reference_for
from agg_core.evidence.changes import of_days, of_times, what_changed
from agg_core.evidence.examine import Asked, examine
from agg_core.evidence.lines import Screenline
from agg_core.evidence.presets import PRESETS
from agg_core.evidence.profiles import cell_profiled, profile
from agg_core.evidence.pull import pull_of
from agg_core.store.codec import save_result
from tests.agg_core import counted
from tests.agg_core.cli.told import only_sentence

RIVER = LineString([(139.1, 34.9), (139.1, 35.4)])
MORNING, NIGHT = counted.MORNING, counted.NIGHT


def geojson(**shapes):
    features = [
        {"type": "Feature", "properties": {"name": name}, "geometry": mapping(shape)}
        for name, shape in shapes.items()
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evidence")
    save_result(counted.by_day(), folder / "run")
    (folder / "lines.geojson").write_text(geojson(river=RIVER))
    halves = {"west": box(139, 35, 139.1, 35.3), "east": box(139.1, 35, 139.3, 35.3)}
    (folder / "wards.geojson").write_text(geojson(**halves))
    (folder / "counters.csv").write_text(
        f"line,direction,time,count\nriver,E,{MORNING},10\nlake,E,{MORNING},1\n"
    )
    (folder / "flows.csv").write_text('origin,dest,count\n"cell 0","cell 1",9\n')
    names = [f"cell {number}" for number in range(9)]
    pd.DataFrame(np.full((9, 9), 7.0), names, names).to_csv(folder / "km.csv", index_label="cell")
    return folder


def told(run, *arguments):
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_evidence_is_that_of_the_functions(run, files):
    result = counted.by_day()
    lines = (Screenline("river", RIVER),)
    read, _ = counters_for(result, lines, str(files / "counters.csv"))
    reference, _ = reference_for(result, str(files / "flows.csv"), "flows.csv")
    asked = Asked(lines=lines, counters=read.counters, reference=reference, preset=PRESETS["txdot"])
    expected = examine(result, asked).to_dict()
    found = told(
        run, "evidence", files / "run", "--screenlines", files / "lines.geojson", "--counters",
        files / "counters.csv", "--reference", files / "flows.csv", "--preset", "txdot",
    )  # fmt: skip
    assert found.pop("set_aside") == {"counters": {"no such line": 1}}
    assert found == json.loads(json.dumps(expected))


def test_sectors_distances_days_and_another_source(run, files):
    run_folder = files / "run"
    found = told(run, "evidence", run_folder, "--sectors", files / "wards.geojson")
    assert {row["origin"] for row in found["sector_flows"]} == {"west", "east"}
    found = told(run, "evidence", run_folder, "--distances", files / "km.csv")
    means = [row["value"] for row in found["lengths"] if row["figure"] == "mean_km"]
    known = [value for value in means if value is not None]
    assert known == pytest.approx([7.0] * len(known))
    day = counted.DAYS[0]
    found = told(run, "evidence", run_folder, "--day", day, "--source", "estimate")
    assert (
        found["trip_ends"]
        == json.loads(json.dumps(examine(counted.by_day().of_days([day])).to_dict()))["trip_ends"]
    )
    beside = told(run, "evidence", run_folder, "--reference", "usual")
    assert beside["reference"] == counted.by_day().source_label("usual")
    itself = told(run, "evidence", run_folder, "--reference", run_folder)
    assert itself["reference"] == "run"
    assert [row["slope"] for row in itself["fits"]] == pytest.approx([1.0] * 2)


def test_a_terminal_gets_verdicts_and_few_figures(run, files):
    code, out, err = run(
        "evidence", files / "run", "--screenlines", files / "lines.geojson", "--preset", "atap",
        "--counters", files / "counters.csv", "--slot-minutes", "15",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert len(out.splitlines()) < 40
    assert "15 minutes" in out
    assert sum(line.startswith(("pass:", "fail:", "cannot be told:"))
               for line in out.splitlines()) == 2  # fmt: skip


def test_a_report_is_written(run, files, tmp_path):
    path = tmp_path / "report.html"
    code, out, _ = run("evidence", files / "run", "--html", path)
    content = path.read_bytes()
    assert (code, out) == (0, f"{path}: {len(content):,} bytes\n")
    assert content.startswith(b"<!doctype html>")


def test_changes_are_those_of_the_functions(run, files):
    result, days = counted.by_day(), counted.DAYS
    lines = (Screenline("river", RIVER),)
    expected = what_changed(of_days(result, days[:1], days[1:], MORNING), lines=lines, level=0.2)
    found = told(
        run, "changes", files / "run", "--before", days[0], "--after", days[1], "--after", days[2],
        "--time", "8:00", "--level", "0.2", "--screenlines", files / "lines.geojson",
    )  # fmt: skip
    assert found["total"]["difference"] == pytest.approx(expected.total["difference"].iloc[0])
    assert [row["difference"] for row in found["volumes"]] == pytest.approx(
        expected.volumes["difference"].tolist()
    )
    assert (found["level"], found["n_asked"]) == (0.2, expected.n_asked)
    expected = what_changed(of_times(result, [MORNING], [NIGHT]))
    code, out, _ = run(
        "changes", files / "run", "--from-time", MORNING, "--to-time", NIGHT, "--sectors",
        files / "wards.geojson",
    )  # fmt: skip
    assert code == 0
    assert out.splitlines()[0] == expected.sentence
    found = told(run, "changes", files / "run", files / "run")
    assert found["total"]["difference"] == 0


def test_the_pull_of_a_source_is_that_of_the_functions(run, files, tmp_path):
    expected = pull_of(counted.by_day(), {"gates": counted.drawn()})
    save_result(counted.drawn(), tmp_path / "without")
    words = ["pull", files / "run", "--without", f"gates={tmp_path / 'without'}"]
    found = told(run, *words, "--csv", tmp_path / "places.csv")
    assert [row["moved"] for row in found["flows"]] == pytest.approx(expected.flows["moved"])
    assert len(found["places"]) == len(expected.places)
    assert len(pd.read_csv(tmp_path / "places.csv")) == len(expected.places)
    code, out, _ = run(*words, "--time", MORNING)
    assert code == 0
    assert out.startswith(f"without gates, at {MORNING}: ")


@pytest.mark.parametrize(
    "words",
    [
        ["evidence", "nowhere"],
        ["evidence", "RUN", "--counters", "counters.csv"],
        ["evidence", "RUN", "--slot-minutes", "15"],
        ["evidence", "RUN", "--within-m", "15"],
        ["evidence", "RUN", "--screenlines", "nowhere.geojson"],
        ["evidence", "RUN", "--sectors", "lines.geojson"],
        ["evidence", "RUN", "--source", "nobody"],
        ["evidence", "RUN", "--day", "2030-01-01"],
        ["evidence", "RUN", "--distances", "flows.csv"],
        ["changes", "RUN"],
        ["changes", "RUN", "--before", "2024-05-01"],
        ["changes", "RUN", "RUN", "--before", "2024-05-01", "--after", "2024-05-02"],
        ["changes", "RUN", "--before", "2024-05-01", "--after", "2024-05-01"],
        ["changes", "RUN", "--from-time", "08:00", "--to-time", "23:00", "--time", "08:00"],
        ["changes", "RUN", "RUN", "--level", "2"],
        ["pull", "RUN", "--without", "run"],
        ["pull", "RUN", "--without", "=run"],
        ["pull", "RUN", "--without", "gates=nowhere"],
        ["pull", "RUN", "--without", "gates=run", "--without", "gates=run"],
        ["pull", "RUN", "--without", "gates=run", "--time", "3:00"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_answered_is_one_sentence(run, files, monkeypatch, words):
    monkeypatch.chdir(files)
    code, out, err = run(*("run" if word == "RUN" else word for word in words))
    assert (code, out) == (2, "")
    only_sentence(err)


def test_what_is_followed_over_the_day(run, files, tmp_path):
    folder, result = files / "run", counted.by_day()
    expected = profile(result, cell_profiled(result.states, 0))
    found = told(run, "evidence", folder, "--profile", "cell 0")["profile"]
    assert found == json.loads(json.dumps(expected.to_dict()))
    code, out, err = run("evidence", folder, "--profile", "cell 0", "--csv", tmp_path / "day.csv")
    assert (code, err) == (0, "")
    written = pd.read_csv(tmp_path / "day.csv")
    assert written["count"].tolist() == pytest.approx(expected.table["count"].tolist())
    code, out, err = run("evidence", folder, "--profile", "cell 0", "cell 1")
    assert (code, err) == (0, "")
    assert f"{MORNING} cell 0 to cell 1: " in out
    code, _, err = run(
        "evidence", folder, "--profile", "cell 0", "--html", tmp_path / "report.html"
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "<h3>cell 0</h3>" in (tmp_path / "report.html").read_text()
    for wrong in (["--csv", tmp_path / "day.csv"], ["--profile", "lake"]):
        code, _, err = run("evidence", folder, *wrong)
        assert code == 2
        only_sentence(err)


def test_counters_with_places_stand_at_lines_or_at_borders_of_cells(run, files, tmp_path):
    path = tmp_path / "placed.csv"
    path.write_text(f"lon,lat,direction,time,count\n139.1001,35.05,90,{MORNING},9\n")
    at_line = told(
        run, "evidence", files / "run", "--screenlines", files / "lines.geojson", "--counters", path
    )
    counted_at = {row["line"]: row["counted"] for row in at_line["volumes"] if row["counted"]}
    assert counted_at == {"river": 9.0}
    at_border = told(run, "evidence", files / "run", "--counters", path)
    counted_at = {row["line"]: row["counted"] for row in at_border["volumes"] if row["counted"]}
    assert counted_at == {"cell 0 – cell 1": 9.0}
    code, _, err = run("evidence", files / "run", "--counters", path, "--within-m", "1")
    assert code == 2
    only_sentence(err)
