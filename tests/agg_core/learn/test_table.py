"""The table of learners: what it says is so, and other packages add to it."""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from agg_core.learn.learners import learner_steps
from agg_core.learn.table import AUTO, LEARNERS, Learner, Learners, learner_named, present_name
from agg_core.model.aggregates import Aggregates, aggregate
from agg_core.model.hmm import HMM
from agg_core.study.settings import LearnSettings
from tests.agg_core.tiny import is_one_sentence
from tests.faults import refused

ROOT = Path(__file__).resolve().parents[3]
ROWS = [pytest.param(row, id=row.name) for row in LEARNERS.own.values() if row.name != AUTO]

# ---------------------------------------------------------------- what it says is so


def test_the_document_lists_the_same_learners():
    text = (ROOT / "docs" / "learners.md").read_text(encoding="utf-8")
    table = text.split("\n\n", maxsplit=4)[2]
    listed = re.findall(r"^\| `(\w+)` \|", table, flags=re.M)
    assert sorted(listed) == sorted(LEARNERS.own)


def test_it_is_known_without_what_is_slow_to_load():
    program = (
        "import sys\n"
        "from agg_core.learn.table import LEARNERS\n"
        "assert len(list(LEARNERS)) == len(LEARNERS) > 8\n"
        "print(*sorted({'numpy', 'pandas', 'numba', 'scipy'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == []


@pytest.mark.parametrize("row", ROWS)
def test_a_row_says_what_its_stream_takes(row):
    if row.e_step:
        takes_readings = "noise_map" in inspect.signature(row.load(row.e_step)).parameters
        assert takes_readings == row.readings
    if row.steps:
        named = set(inspect.signature(row.load(row.steps)).parameters)
        named -= {"aggregates", "hmm"}
        told = {
            "prior": row.pulled, "random_state": row.drawn, "calibrate": row.calibrated,
            "begin": row.resumed, "course": row.checkpointed,
        }  # fmt: skip
        assert named == {"fixed", *(name for name, is_so in told.items() if is_so)}


@pytest.mark.parametrize("row", ROWS)
def test_learners_learn_from_what_the_table_says(row):
    """From symbols and places, with the emission known and not; what is not said is refused."""
    rng = np.random.default_rng(0)
    chain = [0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]]
    symbols = HMM.categorical(*chain, np.eye(2)), aggregate(rng.integers(0, 2, (12, 3)), 3, 2)
    places = (
        HMM.gaussian(*chain, np.eye(2), np.ones(2)),
        Aggregates.from_samples(rng.normal(size=(4, 3, 3, 2))),
    )
    for kind, (hmm, groups) in (("symbols", symbols), ("positions", places)):
        for fixed in (("emission",), ()):
            steps = (row.name, groups, hmm)
            if kind in row.observes and (fixed or row.learns_emission):
                found = next(learner_steps(*steps, fixed=fixed, random_state=0)).hmm
                np.testing.assert_allclose(found.transmat.sum(axis=1), 1)
                assert (found.emission is hmm.emission) == bool(fixed)
            else:
                code = "learner-unsuited" if fixed or row.learns_emission else "emission-not-fixed"
                with refused(code) as fault:
                    next(learner_steps(*steps, fixed=fixed))
                assert is_one_sentence(str(fault.value))


# ---------------------------------------------------------------- rows


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"name": "Big"}, "learner-ill-named"),
        ({"name": "a-b"}, "learner-ill-named"),
        ({"name": "cfb_calibrated"}, "learner-ill-named"),
        ({"name": "mine_states"}, "learner-ill-named"),
        ({"label": " "}, "learner-undescribed"),
        ({"about": ""}, "learner-undescribed"),
        ({"steps": "module.function"}, "malformed-reference"),
        ({"e_step": "a:b:c"}, "malformed-reference"),
        ({"steps": ""}, "learner-without-steps"),
        ({"observes": ()}, "not-a-choice"),
        ({"observes": ("cells",)}, "not-a-choice"),
        ({"single": False, "groups": False}, "learner-takes-nobody"),
    ],
    ids=str,
)
def test_a_row_that_cannot_be_is_refused(fault, code):
    good = {"name": "mine", "label": "Mine", "about": "Does it.", "steps": "a.b:c"}
    assert Learner(**good).short == "Mine"
    with refused(code) as raised:
        Learner(**{**good, **fault})
    assert is_one_sentence(str(raised.value))


def test_names_of_earlier_versions_are_those_of_today():
    assert present_name("moments") == "least_squares"
    assert {name: present_name(name) for name in LEARNERS} == {name: name for name in LEARNERS}


# ---------------------------------------------------------------- learners of other packages

LEARNER = """
import numpy as np

from agg_core.learn.em import LearnState
from agg_core.model.hmm import HMM


def steps(aggregates, hmm, *, fixed, prior, random_state):
    d, kept = hmm.n_states, prior / (prior + 1)
    transmat = kept * np.eye(d) + (1 - kept) / d
    for iteration in range(1, 9):
        learned = HMM(np.full(d, 1 / d), transmat, hmm.emission)
        yield LearnState(
            iteration=iteration, hmm=learned, free_energy=0.0, change=0.0, n_empty=0, sweeps=1.0,
            n_unconverged=0,
        )  # fmt: skip
"""

ROW = """
from agg_core.learn.table import Learner

ROW = Learner(
    "blind", "Blind", "Looks at nothing.", steps="{package}.learner:steps", single=False,
    pulled=True, drawn=True,
)
CLASH = Learner("cfb", "Other", "Is another.", steps="{package}.learner:steps")
OLD = Learner("moments", "Other", "Is another.", steps="{package}.learner:steps")
TWICE = Learner("twice", "Other", "Is another.", steps="{package}.learner:steps")
GONE = Learner("gone", "Gone", "Is not there.", steps="{package}.nothing:steps", single=False)
NOTHING = 3
"""


def installed(folder, package, entries):
    """A package as pip leaves it, with entry points."""
    (folder / package).mkdir()
    (folder / package / "__init__.py").touch()
    (folder / package / "learner.py").write_text(LEARNER)
    (folder / package / "row.py").write_text(ROW.format(package=package))
    (folder / package / "broken.py").write_text("raise OSError('no\\nlibrary.')")
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir()
    about.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {package}.{place}" for name, place in entries.items()]
    about.joinpath("entry_points.txt").write_text("\n".join(["[agg_core.learners]", *lines]))


@pytest.fixture
def others(tmp_path, monkeypatch):
    """A table, in this process, of our learners and those of packages laid out by the test."""
    monkeypatch.syspath_prepend(tmp_path)

    def table(**packages):
        for package, entries in packages.items():
            installed(tmp_path, package, entries)
        return Learners(tuple(LEARNERS.own.values()))

    yield table
    for name in [name for name in sys.modules if name.startswith("other_")]:
        del sys.modules[name]


def test_a_learner_of_another_package_comes_last(others):
    table = others(other_a={"blind": "row:ROW"})
    assert list(table) == [*LEARNERS.own, "blind"]
    assert table["blind"].distribution == "other_a"
    assert table.faults == {}
    assert table["cfb"] == LEARNERS["cfb"]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("blind", "missing:ROW"),
        ("blind", "row:MISSING"),
        ("blind", "broken:ROW"),
        ("blind", "row:NOTHING"),
        ("seeing", "row:ROW"),
        ("cfb", "row:CLASH"),
        ("moments", "row:OLD"),
    ],
)
def test_a_broken_or_clashing_one_is_left_out_and_told(others, name, place):
    table = others(other_a={name: place}, other_b={"gone": "row:GONE"})
    with pytest.warns(UserWarning, match=f"learner {name} of other_a is left out") as told:
        assert list(table) == [*LEARNERS.own, "gone"]
    assert [str(warning.message) for warning in told] == [
        str(fault) for fault in table.faults.values()
    ]
    assert list(table.faults) == [name]
    assert is_one_sentence(str(table.faults[name]))
    assert list(table) == [*LEARNERS.own, "gone"], "asked once"


def test_two_of_one_name_are_both_left_out(others):
    table = others(other_a={"twice": "row:TWICE"}, other_b={"twice": "row:TWICE"})
    with pytest.warns(UserWarning, match="learner twice of other_a and other_b is left out"):
        assert "twice" not in table


def test_one_that_cannot_be_loaded_says_whose_it_is(others, monkeypatch):
    table = others(other_a={"gone": "row:GONE"}, other_b={"broken": "broken:ROW"})
    with pytest.warns(UserWarning, match="of other_b"):
        len(table)
    with refused("learner-not-loaded", "gone of the package other_a") as fault:
        table["gone"].load(table["gone"].steps)
    assert is_one_sentence(str(fault.value))
    monkeypatch.setattr("agg_core.learn.table.LEARNERS", table)
    with refused("learner-not-loaded", "broken of other_b"):
        learner_named("broken")
    monkeypatch.setattr("agg_core.study.settings.LEARNERS", table)
    with refused("learner-not-loaded", "broken of other_b"):
        LearnSettings(inference="broken")


PROGRAM = '''
import json, sys
import numpy as np
from streamlit.testing.v1 import AppTest
from agg_core import AggregateHMM, InputError
from agg_core.cli.main import main
from agg_core.base.options import options_of
from agg_core.lab.experiments import LabSettings, lab_steps, learners_for
from agg_core.study.settings import LearnSettings, StudySettings
from tests.agg_core import tiny


FORM = """
from agg_core.study.settings import LearnSettings
from ui.panels import choose_learner

choose_learner(LearnSettings())
"""


def refused(call):
    try:
        return str(call())
    except InputError as fault:
        return str(fault)


known = {"fixed": ("emission",), "init": {"emissionprob": np.eye(2)}, "random_state": 0}
counts = np.array([[[8, 2], [6, 4]], [[2, 8], [4, 6]]])
chosen = tiny.settings(inference="blind", prior=3.0)
result = tiny.run(tiny.people(), chosen)[1]
page = AppTest.from_string(FORM).run()
seen = page.selectbox[0]
page = seen.set_value("blind").run()
assert not page.exception
print(json.dumps({
    "fit": AggregateHMM(2, inference="blind", prior=1.0, **known).fit(counts).transmat_.tolist(),
    "study": result.by_time[0].estimate.transmat.tolist(),
    "learner": result.learner,
    "back": StudySettings.from_dict(chosen.to_dict()) == chosen,
    "choices": options_of(LearnSettings)["inference"].choices[-1],
    "form": seen.options[-1],
    "caption": page.caption[0].value,
    "lab": "blind" in learners_for("fig7"),
    "unused": LearnSettings(inference="blind").unused,
    "single": refused(lambda: LearnSettings(inference="blind", group_size=1)),
    "single_fit": refused(
        lambda: AggregateHMM(2, inference="blind", **known).fit([[0, 1], [1, 1]])
    ),
    "gone": refused(lambda: tiny.run(tiny.people(), tiny.settings(inference="gone"))),
    "code": main(["learn", "sample", "--inference", "blind", "--grid", "3x3", "--length", "3",
                  "--times", "08:00", "--noise", "given", "--replicates", "0",
                  "--save", sys.argv[1]]),
}), file=sys.stderr)
'''


def test_a_learner_of_another_package_is_offered_and_learns_everywhere(tmp_path):
    installed(tmp_path, "other_c", {"blind": "row:ROW", "gone": "row:GONE"})
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "saved")],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stderr.splitlines()[-1])
    # A prior of p people keeps p / (p + 1) of everyone where they are, by what the learner is.
    np.testing.assert_allclose(found["fit"], 0.5 * np.eye(2) + 0.5 / 2)
    np.testing.assert_allclose(found["study"], 0.75 * np.eye(9) + 0.25 / 9)
    assert found["learner"] == "blind"
    assert found["back"]
    assert found["choices"] == "gone"
    assert found["form"] == "Gone"
    assert "other" in found["caption"]
    assert not found["lab"], "it cannot learn from single people, with whom the Lab compares"
    assert found["unused"] == ["assumed", "assumed_m", "calibrate", "prior"]
    for name in ("single", "single_fit"):
        assert "blind cannot learn from single people" in found[name]
    assert "gone of the package other_c cannot run" in found["gone"]
    assert found["code"] == 0
    settings = json.loads((tmp_path / "saved" / "result.json").read_text())["settings"]
    assert settings["learn"]["inference"] == "blind"
