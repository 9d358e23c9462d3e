"""What `agg-core bench` prints."""

from dataclasses import replace

import pytest

from agg_core.cli import bench
from agg_core.lab.accuracy import error_by_groups
from agg_core.lab.experiments import EXPERIMENTS
from tests.agg_core.cli.told import strict_json


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
