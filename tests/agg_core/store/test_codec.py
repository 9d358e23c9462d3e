import json
import os
import shutil
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from agg_core.base.errors import InputError
from agg_core.store import codec as runs
from agg_core.store import result_files
from agg_core.store.codec import load_result, save_result
from agg_core.study.counts import CountStudy
from agg_core.study.people import SOURCES, StudyResult
from agg_core.study.settings import WindowSettings
from tests.agg_core import counted, tiny
from tests.agg_core.sealing import unseal
from tests.faults import refused

FILES = ("counted_steps.parquet", "parameters.npz", "remembered.json", "result.json")
CASES = {
    "all day": tiny.settings(iterations=2),
    "times": tiny.settings(
        WindowSettings(60, 3, ("06:00", "12:00"), 90), group_size=1, iterations=2
    ),
    "no figures": tiny.settings(grid=replace(tiny.GRID, rows=1, cols=1), iterations=1),
    "outside": tiny.settings(iterations=1, threshold=1e6),
}


@cache
def result_of(case):
    return tiny.run(tiny.people(case == "outside"), CASES[case])[1]


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "run"
    save_result(result_of("all day"), folder)
    return unseal(folder)


def same(a, b):
    return a == b or (np.isnan(a) and np.isnan(b))


# ---------------------------------------------------------------- there and back


@pytest.mark.parametrize("case", CASES)
def test_a_result_comes_back_to_the_bit(case, tmp_path):
    result = result_of(case)
    save_result(result, tmp_path / "run")
    back = load_result(tmp_path / "run")
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == sorted(FILES)
    for at in result.times:
        for source in SOURCES:
            one, other = (found.table(at, source) for found in (back, result))
            pd.testing.assert_frame_equal(one, other, check_exact=True)
    pd.testing.assert_frame_equal(back.counted_steps, result.counted_steps, check_exact=True)
    assert back.settings == result.settings
    assert back.dropped == result.dropped
    for name in ("n_individuals", "n_states", "has_outside", "wall_s"):
        assert getattr(back, name) == getattr(result, name)
    pairs = [(back, result), *zip(back.by_time, result.by_time, strict=True)]
    for one, other in pairs:
        for comparison in ("vs_single", "vs_counted"):
            found, saved = getattr(one, comparison), getattr(other, comparison)
            assert all(same(getattr(found, f.name), getattr(saved, f.name)) for f in fields(found))
    for one, other in zip(back.by_time, result.by_time, strict=True):
        assert (one.time, one.n_sequences, one.n_groups) == (
            other.time, other.n_sequences, other.n_groups,
        )  # fmt: skip
        assert one.observed is not None
        assert one.observed.tolist() == other.observed.tolist()
        for source in ("estimate", "single"):
            found, saved = getattr(one, source), getattr(other, source)
            for name in ("startprob", "transmat"):
                array = getattr(found, name)
                assert array.dtype == np.float64
                assert array.tobytes() == getattr(saved, name).tobytes()
                assert array.shape == getattr(saved, name).shape
            for name in ("history", "reason", "change", "n_unconverged", "wall_s", "converged"):
                assert getattr(found, name) == getattr(saved, name)
    assert back.summary() == result.summary()


def test_a_folder_may_be_given_as_text(tmp_path):
    save_result(result_of("all day"), str(tmp_path / "run"))
    assert load_result(str(tmp_path / "run")).times == result_of("all day").times


def test_a_run_that_holds_a_table_of_flows_is_told_by_its_chains(saved):
    """Runs saved before have flows.parquet: what it says is not looked at."""
    table = pd.DataFrame({"time": ["all day"], "source": ["estimate"], "count": [1e9]})
    table.to_parquet(saved / "flows.parquet", index=False)
    found = load_result(saved).table("all day", "estimate")
    pd.testing.assert_frame_equal(found, result_of("all day").table("all day", "estimate"))


def test_positions_have_no_counts_by_cell(tmp_path):
    learn = {"observed": "positions", "sigma_m": 500.0, "inference": "cfb"}
    _, result = tiny.run(tiny.people(), tiny.settings(iterations=1, **learn))
    save_result(result, tmp_path / "run")
    back = load_result(tmp_path / "run")
    assert back.by_time[0].observed is None
    assert back.noise == result.noise
    assert back.noise is not None
    assert (back.noise.unit, back.noise.groups) == ("metres", 500.0)


def test_the_cases_hold_figures_that_are_not_numbers():
    assert np.isnan(result_of("no figures").vs_counted.cpc)
    assert np.isnan(result_of("outside").vs_counted.precision)


def test_the_json_is_strict(saved):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    about = json.loads((saved / "result.json").read_text(), parse_constant=refuse)
    assert about["format"] == 2


# ---------------------------------------------------------------- damaged

DAMAGED = "result-damaged"


def code_of(folder):
    with pytest.raises(InputError) as fault:
        load_result(folder)
    return fault.value.code


@pytest.mark.parametrize("name", sorted({*FILES} - {"remembered.json"}))
def test_a_missing_file(saved, name):
    (saved / name).unlink()
    assert code_of(saved) == DAMAGED


def test_a_missing_folder(tmp_path):
    assert code_of(tmp_path / "nowhere") == DAMAGED


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kept", [0, 1, 10, 0.3, 0.7, -1], ids=str)
def test_a_file_that_breaks_off(saved, name, kept):
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[: int(kept * len(content)) if 0 < kept < 1 else kept])
    assert code_of(saved) == DAMAGED


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_other_content(saved, name):
    (saved / name).write_bytes(b"\x00\xff not what was saved" * 50)
    assert code_of(saved) == DAMAGED


def test_flipped_bits_among_the_parameters(saved):
    """Whatever byte is hit, the parameters come back whole or not at all."""
    path = saved / "parameters.npz"
    content = path.read_bytes()
    whole = load_result(saved).by_time[0]
    n_refused = 0
    for at in range(0, len(content), 11):
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        try:
            back = load_result(saved).by_time[0]
        except InputError:
            n_refused += 1
        else:
            for source in ("estimate", "single"):
                np.testing.assert_array_equal(
                    getattr(back, source).transmat, getattr(whole, source).transmat
                )
    assert n_refused > len(content) / 11 / 2


def test_parameters_exchanged_for_a_single_array(saved):
    with (saved / "parameters.npz").open("wb") as file:
        np.save(file, np.eye(3))
    assert code_of(saved) == DAMAGED


def altered(folder, change):
    path = folder / "result.json"
    about = json.loads(path.read_text())
    change(about)
    path.write_text(json.dumps(about))


@pytest.mark.parametrize("number", [1, 3, "2", None])
def test_another_format_is_named(saved, number):
    altered(saved, lambda about: about.update(format=number))
    with refused("other-format-version", f"format {number}") as fault:
        load_result(saved)
    assert tiny.is_one_sentence(str(fault.value).replace("; ", ", "))


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about.pop("format"),
        lambda about: about.pop("wall_s"),
        lambda about: about.update(vs_single=None),
        lambda about: about.update(times=None),
        lambda about: about.update(settings=[]),
        lambda about: about["vs_counted"].update(extra=1),
        lambda about: about["times"][0].pop("estimate"),
        lambda about: about["times"][0].update(single=None),
        lambda about: about["times"][0]["single"].update(history=3),
        lambda about: about["settings"]["learn"].update(seed="x"),
        lambda about: about["settings"]["learn"].update(unknown=1),
        lambda about: about["times"].append(about["times"][0]),
    ],
)
def test_json_without_what_is_needed(saved, change):
    altered(saved, change)
    assert code_of(saved) == DAMAGED


@pytest.mark.parametrize("text", ["[]", "3", "null", '"text"', "{}", "", "{", "NaN"])
def test_json_of_another_shape(saved, text):
    (saved / "result.json").write_text(text)
    assert code_of(saved) == DAMAGED


def test_what_trials_found_comes_back(tmp_path):
    found = {"a": [0.1, -2.0], "b": {"share": 0.25, "contradicted": False}}
    save_result(replace(result_of("all day"), remembered=found), tmp_path / "run")
    assert load_result(tmp_path / "run").remembered == found
    # Results saved before it was kept have none.
    unseal(tmp_path / "run")
    (tmp_path / "run" / "remembered.json").unlink()
    assert load_result(tmp_path / "run").remembered == {}


@pytest.mark.parametrize("text", ["[]", "{", ""])
def test_a_memory_of_another_shape(saved, text):
    (saved / "remembered.json").write_text(text)
    assert code_of(saved) == DAMAGED


def test_settings_out_of_range_are_not_loaded(saved):
    altered(saved, lambda about: about["settings"]["learn"].update(group_size=0))
    with refused("value-out-of-range", "Group size"):
        load_result(saved)


class Trap:
    """Unpickling this makes a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def test_a_pickled_object_is_never_executed(saved, tmp_path):
    made = tmp_path / "executed"
    with np.load(saved / "parameters.npz") as arrays:
        content = dict(arrays)
    trap = np.array([Trap(made)], dtype=object)
    np.savez(saved / "parameters.npz", **{**content, "estimate_transmat_0": trap})
    assert code_of(saved) == DAMAGED
    assert not made.exists()
    with np.load(saved / "parameters.npz", allow_pickle=True) as arrays:
        arrays["estimate_transmat_0"]
    assert made.exists(), "the trap works, so its silence above means something"


# ---------------------------------------------------------------- flows from counts

COUNTED = {
    "with an outside": counted.study(),
    "cells without a place": counted.placeless(),
    "no worlds": counted.unsure(),
    "steps of known length": replace(counted.study(), step_minutes=30.0, steps=(7, 0, 6)),
    "numbers of numpy": replace(
        counted.study(), n_days=np.int64(7), wall_s=np.float64(1.25), has_outside=np.bool_(True)
    ),
    "counts that are all 0": replace(
        counted.study(),
        identifiability=replace(counted.study().identifiability, rank=0, condition=np.inf),
    ),
}
COUNTED_FILES = (
    "candidates.parquet", "day_flows.parquet", "flows.parquet", "held_out.parquet",
    "parameters.npz", "remembered.json", "result.json",
)  # fmt: skip


@pytest.mark.parametrize("case", COUNTED)
def test_flows_from_counts_come_back_to_the_bit(case, tmp_path):
    study = COUNTED[case]
    save_result(study, tmp_path / "run")
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == list(COUNTED_FILES)
    back = load_result(tmp_path / "run")
    for field in fields(study):
        found, saved = getattr(back, field.name), getattr(study, field.name)
        if isinstance(saved, pd.DataFrame):
            pd.testing.assert_frame_equal(found, saved, check_exact=True)
        elif isinstance(saved, np.ndarray):
            assert (found.dtype, found.tobytes()) == (saved.dtype, saved.tobytes())
            assert found.shape == saved.shape
        else:
            assert found == saved, field.name
    assert type(back.n_days) is int


def test_the_json_of_counts_is_strict(tmp_path):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    save_result(COUNTED["counts that are all 0"], tmp_path / "run")
    text = (tmp_path / "run" / "result.json").read_text()
    assert json.loads(text, parse_constant=refuse)["format"] == 2


@pytest.fixture
def kept(tmp_path):
    save_result(counted.study(), tmp_path / "kept")
    return unseal(tmp_path / "kept")


def test_a_run_of_counts_saved_without_length_and_number_of_steps_is_read(kept):
    about = json.loads((kept / "result.json").read_text())
    del about["step_minutes"], about["steps"]
    (kept / "result.json").write_text(json.dumps(about))
    assert load_result(kept).step_name == "step"
    with refused("steps-unknown"):
        load_result(kept).steps_summed(counted.MORNING)


@pytest.mark.parametrize("name", sorted({*COUNTED_FILES} - {"remembered.json"}))
@pytest.mark.parametrize("left", [None, 0, 10, -1], ids=str)
def test_a_file_of_counts_that_is_missing_or_breaks_off(kept, name, left):
    content = (kept / name).read_bytes()
    (kept / name).unlink()
    if left is not None:
        (kept / name).write_bytes(content[:left])
    assert code_of(kept) == DAMAGED


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about.pop("format"),
        lambda about: about.pop("n_days"),
        lambda about: about.update(settings=[]),
        lambda about: about["settings"].update(unknown=1),
        lambda about: about.update(grid={}),
        lambda about: about.update(identifiability=None),
        lambda about: about["identifiability"].update(alike=[[1]]),
        lambda about: about["cells"].pop(),
        lambda about: about.update(has_outside=False),
    ],
)
def test_json_of_counts_without_what_is_needed(kept, change):
    altered(kept, change)
    assert code_of(kept) == DAMAGED


def test_counts_of_another_format_or_with_settings_out_of_range_are_named(kept):
    altered(kept, lambda about: about.update(format=1))
    with refused("other-format-version", "format 1"):
        load_result(kept)
    altered(kept, lambda about: about.update(format=2))
    altered(kept, lambda about: about["settings"].update(prior=-1.0))
    with refused("value-out-of-range", "Weight of the prior"):
        load_result(kept)


def test_doubts_come_back_and_runs_saved_before_have_none(tmp_path):
    folder = tmp_path / "doubted"
    save_result(counted.doubted(), folder)
    assert load_result(folder).doubts == counted.DOUBTS
    altered(unseal(folder), lambda about: about.pop("doubts"))
    assert load_result(folder).doubts == ()


def test_a_pickled_object_among_the_chances_is_never_executed(kept, tmp_path):
    made = tmp_path / "executed"
    trap = np.array([Trap(made)], dtype=object)
    np.savez(kept / "parameters.npz", transmats=trap, people=counted.study().people)
    assert code_of(kept) == DAMAGED
    assert not made.exists()


def test_each_kind_opens_as_what_it_was_also_where_no_kind_is_told(saved, kept):
    for folder, kind in ((saved, StudyResult), (kept, CountStudy)):
        assert type(load_result(folder)) is kind
        about = json.loads((folder / "result.json").read_text())
        assert about.pop("kind") == kind.kind
        (folder / "result.json").write_text(json.dumps(about))
        assert type(load_result(folder)) is kind


def test_a_kind_that_is_not_known_is_damage(saved):
    about = json.loads((saved / "result.json").read_text())
    (saved / "result.json").write_text(json.dumps({**about, "kind": "dreams"}))
    assert code_of(saved) == DAMAGED


# ---------------------------------------------------------------- whole or not at all


def test_a_folder_that_holds_a_result_stays_as_it_was(saved):
    before = {p.name: p.read_bytes() for p in saved.iterdir()}
    with pytest.raises(OSError):  # noqa: PT011  # the number depends on the file system
        save_result(result_of("times"), saved)
    assert {p.name: p.read_bytes() for p in saved.iterdir()} == before
    assert [p.name for p in saved.parent.iterdir()] == ["run"]


def test_nothing_of_counts_is_left_when_saving_fails(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(runs, "write_json", fail)
    with pytest.raises(OSError, match="disk full"):
        save_result(counted.study(), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("where", ["write_json", "_to_json"])
def test_nothing_is_left_when_saving_fails(tmp_path, monkeypatch, fault, where):
    def fail(*_):
        raise fault

    monkeypatch.setattr(runs, where, fail)
    with pytest.raises(type(fault)):
        save_result(result_of("all day"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_the_result_appears_only_once_it_is_whole(tmp_path, monkeypatch):
    seen = []
    write = runs.write_json

    def watch(path, values):
        seen.append((tmp_path / "run").exists())
        write(path, values)

    monkeypatch.setattr(runs, "write_json", watch)
    monkeypatch.setattr(result_files, "write_json", watch)
    save_result(result_of("all day"), tmp_path / "run")
    assert seen == [False, False]
    assert (tmp_path / "run").is_dir()


def test_a_result_can_be_moved(saved, tmp_path):
    shutil.move(saved, tmp_path / "elsewhere")
    assert load_result(tmp_path / "elsewhere").n_individuals == 60


# ---------------------------------------------------------------- sparse tables


@cache
def within_reach(replicates=0, days=1):
    people = tiny.people() if days == 1 else tiny.people_of_two_days()
    settings = tiny.settings(
        WindowSettings(60, 3, ("06:00", "12:00"), 90), iterations=2, reach_m=21_000.0,
        replicates=replicates,
    )  # fmt: skip
    return tiny.run(people, settings)[1]


@pytest.mark.parametrize(("replicates", "days"), [(0, 1), (2, 1), (2, 2)])
def test_a_study_within_a_reach_comes_back_to_the_bit(tmp_path, replicates, days):
    result = within_reach(replicates, days)
    save_result(result, tmp_path / "run")
    back = load_result(tmp_path / "run")
    assert back.settings == result.settings
    assert back.summary() == result.summary()
    columns = ["count", *["low", "high"] * (replicates > 0)]
    for time in result.times:
        for source in SOURCES:
            one, other = (found.matrix(time, source) for found in (back, result))
            for name in ("data", "indices", "indptr"):
                assert getattr(one, name).tolist() == getattr(other, name).tolist()
        for column in columns:
            one, other = (found.matrix(time, column=column) for found in (back, result))
            assert one.data.tolist() == other.data.tolist()
    if days > 1:
        one, other = (found.of_days(found.days[:1]) for found in (back, result))
        pd.testing.assert_frame_equal(one.values("06:00"), other.values("06:00"), check_exact=True)


def test_whole_tables_are_not_saved_of_a_study_within_a_reach(tmp_path):
    save_result(within_reach(2), tmp_path / "run")
    with np.load(tmp_path / "run" / "parameters.npz") as arrays:
        n = len(arrays["pattern_indices"])
        assert n < 81
        sized = [name for name in arrays if name.endswith(("transmat_0", "low_1", "high_0"))]
        assert len(sized) == 4
        assert {arrays[name].shape for name in sized} == {(n,)}


def with_arrays(folder, **changes):
    with np.load(folder / "parameters.npz") as arrays:
        content = {name: np.array(arrays[name]) for name in arrays}
    for name, change in changes.items():
        found = change(content.pop(name))
        if found is not None:
            content[name] = found
    np.savez(folder / "parameters.npz", **content)


def put(at, value):
    def change(array):
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    "changes",
    [
        {"pattern_indptr": lambda a: a[:-1]},
        {"pattern_indptr": lambda a: a[None]},
        {"pattern_indptr": lambda a: a.astype(float)},
        {"pattern_indptr": lambda a: a + 1},
        {"pattern_indptr": put(4, -7)},
        {"pattern_indptr": put(4, 10**9)},
        {"pattern_indptr": put(-1, 10**9)},
        {"pattern_indptr": lambda a: None},
        {"pattern_indices": lambda a: None},
        {"pattern_indices": put(0, -1)},
        {"pattern_indices": put(3, 9)},
        {"pattern_indices": put(3, 2**40)},
        {"pattern_indices": lambda a: a[::-1]},
        {"pattern_indices": lambda a: 0 * a},
        {"pattern_indices": lambda a: a.astype(str)},
        {"estimate_transmat_0": lambda a: a[:-1]},
        {"estimate_transmat_0": lambda a: a[None]},
        {"estimate_transmat_0": put(2, np.nan)},
        {"single_transmat_1": put(2, np.inf)},
        {"single_transmat_1": lambda a: a.astype(str)},
        {"single_startprob_1": lambda a: a[:-1]},
        {"low_0": lambda a: a[1:]},
        {"high_1": put(0, np.nan)},
    ],
)
def test_a_pattern_that_is_none_is_damage(tmp_path, changes):
    save_result(within_reach(2), tmp_path / "run")
    unseal(tmp_path / "run")
    with_arrays(tmp_path / "run", **changes)
    assert code_of(tmp_path / "run") == DAMAGED


def test_counted_flows_beyond_the_reach_are_damage(tmp_path):
    folder = tmp_path / "run"
    save_result(within_reach(), folder)
    unseal(folder)
    table = pd.read_parquet(folder / "counted_steps.parquet")
    for origin, dest in ((0, 8), (0, 9), (-1, 3)):
        changed = table.assign(origin=origin, dest=dest)
        changed.to_parquet(folder / "counted_steps.parquet", index=False)
        assert code_of(folder) == DAMAGED


@pytest.mark.parametrize("reach_m", [None, 15_000.0])
def test_settings_of_another_kind_of_tables_are_damage(tmp_path, reach_m):
    """A study with a reach whose settings have none, and the other way round."""
    folder = tmp_path / "run"
    save_result(within_reach() if reach_m is None else result_of("all day"), folder)
    altered(unseal(folder), lambda about: about["settings"]["learn"].update(reach_m=reach_m))
    assert code_of(folder) == DAMAGED
