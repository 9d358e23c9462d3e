"""What is told of saved runs: each kind keeps the files that it writes, and its text comes back."""

import json
from dataclasses import replace
from functools import cache

import pytest

from agg_core.io.gates import read_gates
from agg_core.store.codec import CODECS, load_result, save_result
from agg_core.store.saved_runs import KINDS, about_result, from_json, to_json
from agg_core.study.gates import gate_study_steps
from agg_core.study.settings import GateLearnSettings
from tests.agg_core import counted, tiny
from tests.agg_core.gates import made


@cache
def doubted():
    """A study of two days with simulated worlds."""
    return tiny.run(tiny.people_of_two_days(), tiny.settings(iterations=1, replicates=2))[1]


@cache
def between_stations():
    """Flows of a week between stations."""
    entries, exits, _ = made.trips(7)
    table = read_gates(made.long_table(entries), made.long_table(exits), made.places())
    *_, result = gate_study_steps(table, GateLearnSettings(draws=2, minutes_per_km=1.2))
    return result


RESULTS = {"study": doubted, "counts": counted.by_day, "gates": between_stations}


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_keeps_all_files_of_its_results_and_no_others(name, tmp_path):
    result = RESULTS[name]()
    assert result.kind == KINDS[name].run.kind == name
    save_result(result, tmp_path / "result")
    assert sorted(p.name for p in (tmp_path / "result").iterdir()) == sorted(CODECS[name].files)
    assert load_result(tmp_path / "result").kind == name


@pytest.mark.parametrize("name", KINDS)
def test_what_is_told_comes_back_from_its_text(name, tmp_path):
    result = RESULTS[name]()
    kind = KINDS[name]
    save_result(result, tmp_path / "result")
    told = about_result("0" * 32, "A title", result, tmp_path / "result")
    values = json.loads(to_json(told))
    assert from_json("0" * 32, values) == told
    assert values["kind"] == name
    assert set(values) >= {"format", "created", *kind.read}
    with pytest.raises(ValueError, match="0" * 32):
        from_json("1" * 32, values)


def test_learners_have_their_names_of_today(tmp_path):
    result = RESULTS["study"]()
    save_result(result, tmp_path / "result")
    told = about_result("0" * 32, "A title", result, tmp_path / "result")
    values = json.loads(to_json(told)) | {"learner": "cfb, moments"}
    assert from_json("0" * 32, values) == replace(told, learner="cfb, least_squares")


@pytest.mark.parametrize(("name", "least"), [("study", 10), ("counts", 0), ("gates", 0)])
def test_runs_of_earlier_versions_have_the_least_number_of_people_of_their_kind(
    name, least, tmp_path
):
    result = RESULTS[name]()
    save_result(result, tmp_path / "result")
    told = about_result("0" * 32, "A title", result, tmp_path / "result")
    assert told.least_people == least
    values = json.loads(to_json(told))
    assert values.pop("least_people") == least
    assert from_json("0" * 32, values) == told
    assert from_json("0" * 32, values | {"least_people": 6.5}).least_people == 7
    for altered in (-1, float("nan"), 1e12):
        with pytest.raises(ValueError, match=r"."):
            from_json("0" * 32, values | {"least_people": altered})
