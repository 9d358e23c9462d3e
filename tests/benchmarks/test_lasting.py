"""Studies that are timed, and rates that are fitted to them."""

import json
from itertools import islice

import numpy as np
import pytest

from agg_core.study.lasting import RATES_FILE, PeopleSizes, Rates, Stage, shipped_rates
from agg_core.study.settings import LearnSettings
from benchmarks.lasting.cases import COUNTS, PEOPLE, Planned, planned, settings_of
from benchmarks.lasting.command import RUNS
from benchmarks.lasting.fitting import KINDS_OF_WORK, Timed, every_key, fitted, spread_of, told
from benchmarks.lasting.runs import collect, read_runs, timed

SMALL = Planned(
    "people",
    {"name": "city", "people": 60, "seed": 1, "hours": 12},
    {
        "side": 3, "minutes": 60, "length": 3, "times": ["10:00"],
        "learn": {
            "group_size": 5, "replicates": 0, "iterations": 2, "noise": "given",
            "strength": "given",
        },
    },
)  # fmt: skip


def test_studies_that_are_planned_are_of_both_kinds_and_of_all_data():
    plans = list(islice(planned(0), 150))
    assert {plan.kind for plan in plans} == {"people", "counts"}
    assert {plan.data["name"] for plan in plans} == {*PEOPLE, *COUNTS}
    for plan in plans:
        settings_of(plan)


def test_a_study_is_timed_by_stages():
    run = timed(SMALL)
    assert run["cut"] == ""
    assert set(run["spent"]) == {"noise/single", "learning/estimate", "learning/single", "ending"}
    assert run["n_steps"]["learning/estimate"] == 2
    assert sum(run["spent"].values()) == pytest.approx(run["total_s"], abs=1e-3)
    assert run["found"]["sequences"] == [60]
    assert run["probe_s"] > 0


def test_a_study_that_takes_long_is_cut(tmp_path):
    run = timed(SMALL, longest_s=0.0)
    assert run["cut"] == "noise/single"
    assert "found" not in run
    whole = timed(SMALL)
    path = tmp_path / "runs.jsonl"
    refused = {**SMALL.settings, "learn": {"group_size": 61}}
    kept = timed(Planned("people", SMALL.data, refused))
    assert "61" in kept["refused"]
    path.write_text("\n".join(json.dumps(each) for each in (run, kept, whole)))
    (read,) = read_runs(path)
    assert read["spent"] == whole["spent"]


def test_collecting_ends_when_the_time_is_over(tmp_path):
    path = tmp_path / "runs.jsonl"
    collect(path, 0.0, 0)
    assert not path.exists()


def test_rates_that_are_known_are_found_again():
    """Studies that take just what rates say are told within a few per cent."""
    rng = np.random.default_rng(0)
    true = Rates(
        {rate: {kind: rng.uniform(0.5, 2) * 1e-3 for r, kind in every_key("people") if r == rate}
         for rate, _ in every_key("people")},
        {},
    )  # fmt: skip
    runs = []
    for _ in range(60):
        people = int(np.exp(rng.uniform(5, 9)))
        sizes = PeopleSizes(
            (people,), days=1, length=int(rng.integers(3, 9)), states=int(rng.integers(9, 200)),
            occupied=8.0, fixes=40 * people,
        )  # fmt: skip
        stages = tuple(sizes.stages(LearnSettings(group_size=20, replicates=2)))
        probes: dict[str, float] = {}
        for stage in stages:
            name = "noise/single" if stage.name == "preparing" else stage.name
            probes[name] = probes.get(name, 0.0) + true.probes_of(stage)
        runs.append(Timed("made", "people/sampling", stages, probes, True, SMALL))
    found = Rates(fitted(runs), {})
    off = [np.log(run.total / told(run, found)) for run in runs]
    assert np.abs(off).max() < 0.1


@pytest.mark.parametrize(
    ("off", "ends"),
    [
        # Of 100, 91 make up 90 % of 101: the narrowest such range leaves the outer ones out.
        ([*np.linspace(-1, 1, 91), *[9.0] * 9], (-1, 1)),
        ([-9.0] * 9 + [*np.linspace(-0.5, 2, 91)], (-0.5, 2)),
    ],
)
def test_a_spread_is_the_narrowest_that_holds_enough(off, ends):
    np.testing.assert_allclose(np.log(spread_of(np.array(off))), ends, atol=0.01)


def test_what_is_shipped_was_fitted_to_what_was_timed():
    values = json.loads(RATES_FILE.read_text())
    assert f"of {len(read_runs(RUNS))} studies" in values["made_by"]
    rates = shipped_rates()
    for work, kinds in KINDS_OF_WORK.items():
        assert every_key(work) <= {(r, kind) for r, of in rates.probes.items() for kind in of}
        assert set(kinds) <= rates.spread.keys()


def test_a_stage_without_rates_takes_nothing():
    assert Rates({}, {}).probes_of(Stage("a", "b", {"calls": 1.0})) == 0
