"""What `agg-core learn --sweep` prints and writes: a row a value, as learning with it alone."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from agg_core.cli.sweeps import asked_sweep, sweep_text
from agg_core.space.settings import HexSettings
from agg_core.study.settings import CountLearnSettings, StudySettings
from agg_core.study.sweeps import Sweep, SweepResult, SweepRow
from tests.agg_core import tiny
from tests.agg_core.cli.told import HERE, QUICK, only_sentence, strict_json
from tests.faults import refused

OTHERS = [*HERE, "--step", "1h", "--iterations", "3", "--threshold", "2", "--noise", "given",
          "--replicates", "0"]  # fmt: skip


def test_json_has_a_row_a_value_as_if_it_were_learned_with_alone(run, file):
    code, out, err = run("learn", file, *OTHERS, "--strength", "given", "--sweep",
                         "group-size=2,5", "--json")  # fmt: skip
    assert (code, err) == (0, "")
    told = strict_json(out)
    assert told["sweep"] == "group_size"
    assert [row["value"] for row in told["rows"]] == [2, 5]
    assert told["extent"] == [139.0, 35.0, 139.3, 35.3]
    low, high = told["told_s"]
    assert 0 < low < high
    alone = strict_json(run("learn", file, *QUICK, "--json")[1])  # groups of 5
    row = told["rows"][1]
    assert row["movers"] == alone["movers"]
    assert (row["cpc"], row["total_ratio"]) == (
        alone["vs_single"]["cpc"], alone["vs_single"]["total_ratio"],
    )  # fmt: skip
    assert row["cpc_counted"] == alone["vs_counted"]["cpc"]
    assert (row["learner"], row["fault"], row["code"]) == (alone["learner"], "", "")


def test_the_table_is_printed_and_written(run, file, tmp_path):
    path = tmp_path / "table.csv"
    code, out, _ = run("learn", file, *OTHERS[:2], *OTHERS[4:], "--sweep", "grid=2x2,3x3",
                       "--group-size", "5", "--csv", path)  # fmt: skip
    assert code == 0
    head, first, second, written = out.splitlines()
    assert head.split()[:3] == ["grid", "n_states", "movers"]
    assert first.split()[:2] == ["2x2", "4"]
    assert second.split()[:2] == ["3x3", "9"]
    assert written.startswith(str(path))
    table = pd.read_csv(path)
    assert table["value"].tolist() == ["2x2", "3x3"]
    assert table["n_states"].tolist() == [4, 9]
    assert table["movers"].round(1).tolist() == [float(row.split()[2]) for row in (first, second)]


@pytest.mark.parametrize(
    ("words", "first"),
    [("reach=12,30", 12_000.0), ("h3=4,5", 4), ("mesh=1,2", 1), ("inference=cfb,auto", "cfb")],
)
def test_values_are_typed_as_those_of_the_option(run, file, words, first):
    cells = [] if words.startswith(("h3", "mesh")) else ["--grid", "3x3"]
    learner = ["--inference", "cfb"] if words.startswith("reach") else []
    code, out, err = run("learn", file, *OTHERS[:2], *OTHERS[4:], *cells, *learner, "--group-size",
                         "5", "--sweep", words, "--json")  # fmt: skip
    assert (code, err) == (0, "")
    assert strict_json(out)["rows"][0]["value"] == first


def test_counts_have_figures_of_held_out_days(run, tmp_path):
    path = tmp_path / "counts.csv"
    rows = [
        f"2024-02-0{day} {hour:02d}:00,{cell},{20 + hour * number + day}\n"
        for day in (1, 2, 3) for hour in range(6) for number, cell in enumerate("ABC")
    ]  # fmt: skip
    path.write_text("time,cell,count\n" + "".join(rows))
    quick = ["--time", "one", "--strength", "given", "--count-error", "0", "--expansion", "1",
             "--replicates", "0"]  # fmt: skip
    code, out, err = run("learn", path, *quick, "--sweep", "prior=1,20", "--json")
    assert (code, err) == (0, "")
    told = strict_json(out)
    assert "reading" in told
    for row in told["rows"]:
        alone = strict_json(run("learn", path, *quick, "--prior", row["value"], "--json")[1])
        assert row["movers"] == alone["movers"]
        assert row["held_out_mae"] == alone["held_out"]["learned"]["mae"]
        assert "cpc" not in row


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sweep", "group_size=2,61"], "M = 61"),
        (["--sweep", "group_size=2,5", "--group-size", "4"], "--group-size"),
        (["--sweep", "group_size=2,5", "--save", "kept"], "--save"),
        (["--sweep", "threshold=2,5"], "threshold"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_nothing_is_written(run, file, tmp_path, words, said):
    before = set(tmp_path.iterdir())
    code, out, err = run("learn", file, *OTHERS, *words, "--csv", tmp_path / "table.csv")
    assert (code, out) == (2, "")
    assert said in only_sentence(err)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("place", [".", "none/table.csv"])
def test_a_place_where_nothing_can_be_written_is_told_before_it_is_learned(
    run, file, tmp_path, monkeypatch, place
):
    monkeypatch.setattr("agg_core.cli.sweeps.sweep_steps", None)
    code, out, err = run("learn", file, *OTHERS, "--sweep", "group_size=2,5", "--csv",
                         tmp_path / place)  # fmt: skip
    assert (code, out) == (2, "")
    only_sentence(err)


def test_text_tells_of_values_that_failed():
    sweep = Sweep(tiny.settings(), "group_size", (1, 1000))
    result = SweepResult(
        sweep,
        (SweepRow(1, learner="cfb", movers=1234.5), SweepRow(1000, fault="It failed.", code="x-y")),
        1.0,
    )
    head, first, second, failed = sweep_text(result).splitlines()
    assert first.split()[:3] == ["1", "-", "1,234.5"]
    assert set(second.split()[1:]) == {"-"}
    assert failed == "1000: It failed."
    # Columns of figures end where their names end.
    end = head.index("movers") + len("movers")
    assert first[:end].endswith("1,234.5")


class Chosen:
    """What argparse hands over, of which nothing else is given."""

    def __init__(self, sweep):
        self.sweep = sweep
        self.grid = self.mesh = self.h3 = self.polygons = None
        self.save = self.like = self.reference = None


def test_cells_that_are_varied_are_of_that_kind():
    chosen = Chosen("h3=5,6")
    asked = asked_sweep(chosen, StudySettings)
    assert (asked.name, chosen.h3) == ("h3", 5)
    settings = StudySettings(HexSettings(139, 35, 139.3, 35.3, chosen.h3))
    sweep = Sweep(settings, asked.name, asked.values)  # no table's
    assert [each.grid.resolution for each in sweep.each] == [5, 6]
    for text, code in (
        ("h3", "not-name-value"), ("=1,2", "not-name-value"), ("seed=", "not-name-value"),
        ("h3=x,5", "not-whole-numbers"), ("seed=1,,2", "not-whole-numbers"),
    ):  # fmt: skip
        with refused(code):
            asked_sweep(Chosen(text), StudySettings)
    with refused("unknown-option"):
        asked_sweep(Chosen("h3=5,6"), CountLearnSettings)
    assert math.isnan(SweepRow(1).movers)
