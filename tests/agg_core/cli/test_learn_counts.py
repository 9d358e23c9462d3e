"""Learning from a file of counts on the command line, and what is made of the result."""

import numpy as np
import openmatrix
import pandas as pd
import pytest

from agg_core.exports import EXPORTS, ExportInput
from agg_core.io.counts import read_counts
from agg_core.store.codec import load_result, save_result
from agg_core.study.counts import CountStudy, count_study_steps
from agg_core.study.result import WHOLE_DAY
from agg_core.study.settings import CountLearnSettings
from tests.agg_core import counted, tiny
from tests.agg_core.cli.told import only_sentence, strict_json

QUICK = ["--time", "one", "--strength", "given", "--prior", "5", "--seed", "4"]
SETTINGS = CountLearnSettings(
    time="one", strength="given", prior=5.0, seed=4, replicates=3, threshold=9.0
)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Three days of 100 people in three cells, and a row without a count."""
    rng = np.random.default_rng(3)
    hours = pd.date_range("2024-05-01", periods=72, freq="h", tz="UTC")
    present = rng.multinomial(100, [0.5, 0.3, 0.2], len(hours))
    table = pd.DataFrame(
        {"time": hours.repeat(3), "cell": ["a", "b", "c"] * len(hours), "count": present.ravel()}
    )
    path = tmp_path_factory.mktemp("data") / "counts.csv"
    text = table.to_csv(index=False).splitlines()
    text[1] = text[1].rpartition(",")[0] + ",many"
    path.write_text("\n".join(text))
    return path


@pytest.fixture(scope="module")
def learned(file):
    """The same by the functions."""
    *_, result = count_study_steps(read_counts(file), SETTINGS)
    return result


def test_json_is_one_object_with_the_figures_of_the_study(run, file, learned):
    options = [*QUICK, "--replicates", "3", "--threshold", "9", "--json"]
    code, out, err = run("learn", file, *options)
    assert (code, err) == (0, "")
    told = strict_json(out)
    moves = [
        (count, resolved)
        for a, b, count, resolved in learned.happened.day_flows[
            ["origin", "dest", "count", "resolved"]
        ].itertuples(index=False)
        if a != b
    ]
    assert told["movers"] == pytest.approx(sum(count for count, _ in moves))
    assert told["n_flows"] == sum(count > 9 for count, _ in moves)
    assert told["n_resolved"] == sum(bool(sure) for count, sure in moves if count > 9)
    assert 0 < told["n_flows"] < len(moves)
    errors = learned.held_out.set_index("method")["mae"]
    assert {m: at["mae"] for m, at in told["held_out"].items()} == pytest.approx(errors.to_dict())
    assert told["held_out"]["persistence"]["score"] is None
    # The hour with a count that is none makes a pair of its own unusable.
    assert (told["n_days"], told["n_pairs"], told["n_left_out"]) == (3, 70, 1)
    assert (told["n_cells"], told["step"], told["prior"], told["by_time"]) == (3, "hour", 5, False)
    assert told["people"] == pytest.approx(100)
    assert told["peak_mb"] > 0
    reading = told["reading"]
    assert (reading["rows_read"], reading["rows_used"]) == (216, 215)
    assert sum(aside["count"] for aside in reading["set_aside"].values()) == 1


def by_hand(learned, reference):
    """Figures of moves (slot, origin, dest) of a reference, added up one after the other."""
    steps = learned.steps
    flows = {
        (r.slot, r.origin, r.dest): [x * steps[r.slot] for x in (r.count_, r.low, r.high)]
        for r in learned.happened.flows.rename(columns={"count": "count_"}).itertuples()
        if r.origin != r.dest
    }
    common = sum(min(flow[0], reference.get(move, 0)) for move, flow in flows.items())
    moved, known = sum(flow[0] for flow in flows.values()), sum(reference.values())
    large = [move for move, count in reference.items() if count > 5]
    held = sum(flows[m][1] - 0.5 <= reference[m] <= flows[m][2] + 0.5 for m in large)
    return {"cpc_by_time": 2 * common / (moved + known), "total_ratio": moved / known,
            "coverage_90": held / len(large), "n_flows": len(large)}  # fmt: skip


def test_flows_that_are_known_are_compared(run, file, learned, tmp_path):
    options = [*QUICK, "--replicates", "3", "--threshold", "9", "--json"]
    # Three days of hours: a pair begins at each but the last one, and a count is missing at 0:00.
    assert learned.steps == (2, *[3] * 22, 2)
    reference = {(8, 0, 1): 40, (8, 1, 0): 31.5, (9, 2, 0): 3, (20, 0, 2): 18, (23, 1, 2): 900}
    rows = [(f"{s:02d}:00", "abc"[o], "abc"[d], n) for (s, o, d), n in reference.items()]
    table = pd.DataFrame(rows, columns=["time", "origin", "dest", "count"])
    # One flow in two rows, and rows that are none.
    more = pd.DataFrame([("08:00", "a", "b", 5), ("08:00", "a", "zz", 7), ("08:00", "b", "a", -1)],
                        columns=table.columns)  # fmt: skip
    reference[8, 0, 1] += 5
    table = pd.concat([table, more])
    table.to_csv(tmp_path / "known.csv", index=False, sep=";")
    table.to_parquet(tmp_path / "known.parquet")
    matrices = {f"at_{slot:02d}_00": np.zeros((3, 3)) for slot in range(24)}
    for (slot, origin, dest), count in reference.items():
        matrices[f"at_{slot:02d}_00"][origin, dest] = count
    with openmatrix.open_file(str(tmp_path / "known.omx"), "w") as omx:
        for name, matrix in matrices.items():
            omx.create_matrix(name, obj=matrix)
    told = {}
    for name in ("known.omx", "known.csv", "known.parquet"):
        code, out, err = run("learn", file, *options, "--reference", tmp_path / name)
        assert (code, err) == (0, "")
        told[name] = strict_json(out)
        found = told[name]["vs_reference"]
        expected = by_hand(learned, reference)
        assert {figure: found[figure] for figure in expected} == pytest.approx(expected)
        aside = {} if name == "known.omx" else {"negative count": 1, "no such cell": 1}
        assert found["set_aside"] == aside
        assert {"wall_s", "rhat"} <= told[name].keys()
    first, *others = ({**each["vs_reference"], "set_aside": {}} for each in told.values())
    assert others == [first, first]
    _, text, _ = run("learn", file, *options[:-1], "--reference", tmp_path / "known.csv")
    (line,) = [line for line in text.splitlines() if line.startswith("against the reference")]
    for figure in ("cpc", "cpc_by_time", "total_ratio", "coverage_90"):
        assert f"{figure} {found[figure]:.3f}" in line
    assert line.endswith("of 4 flows; rows left out: negative count 1, no such cell 1")


def test_a_reference_of_other_cells_is_refused_before_anything_is_learned(
    run, file, tmp_path, monkeypatch
):
    monkeypatch.setattr("agg_core.cli.learn.count_study_steps", None)
    (tmp_path / "known.csv").write_text("origin,dest,count\nx,y,3\n")
    words = ["--reference", tmp_path / "known.csv", "--save", tmp_path / "kept"]
    code, out, err = run("learn", file, *QUICK, *words)
    assert (code, out, (tmp_path / "kept").exists()) == (2, "", False)
    assert "the cells are called a, b, c" in only_sentence(err)


def test_text_says_what_was_read_and_what_was_learned(run, file, learned):
    code, out, err = run("learn", file, *QUICK, "--replicates", "0")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line.split()[-1] for line in lines if line.startswith("Rows")] == ["216", "215"]
    begin = next(i for i, line in enumerate(lines) if line.startswith("3 days"))
    said = lines[begin:]
    assert said[0] == "3 days, 70 pairs of successive counts, 3 cells, 100.0 people at a time"
    assert said[1].startswith("1 pair left out")
    assert said[2].startswith(f"learner: {learned.learner}, since {learned.choice}")
    assert said[3] == learned.doubt_of_counts
    assert said[4] == "prior of 5 people per cell, the same chances all day"
    assert said[5] == learned.identifiability.sentence
    errors = learned.held_out.set_index("method")["mae"]
    assert said[6].endswith(", ".join(f"{m} {error:.3f}" for m, error in errors.items()))
    assert "resolved" not in said[7]


def test_a_terminal_is_told_each_stage(run, file, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    _, _, err = run("learn", file, *QUICK, "--replicates", "2")
    for stage in (
        "Takes about ",
        "choosing",
        "learning",
        "validating",
        "doubting: simulated world 2 of 2",
    ):
        assert stage in err


def test_what_is_kept_is_read_back(run, file, learned, tmp_path):
    folder = tmp_path / "kept"
    options = [*QUICK, "--replicates", "3", "--threshold", "9"]
    assert run("learn", file, *options, "--save", folder)[0] == 0
    back = load_result(folder)
    assert isinstance(back, CountStudy)
    assert back.settings == SETTINGS
    pd.testing.assert_frame_equal(back.flows, learned.flows)
    code, out, err = run("learn", file, *options, "--save", folder)
    assert (code, out) == (2, "")
    assert "exists already" in err


def test_a_prior_of_nothing_needs_counts_that_fix_the_flows(run, tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("time,cell,count\n" + "".join(
        f"2024-05-0{day} 0{hour}:00,{cell},5\n"
        for day in (1, 2) for hour in (1, 2) for cell in "abc"
    ))  # fmt: skip
    code, out, err = run("learn", path, "--strength", "given", "--prior", "0")
    assert (code, out) == (2, "")
    assert err.startswith("agg-core: Without a prior these counts do not fix the flows")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    save_result(counted.study(), folder / "placed")
    save_result(counted.placeless(), folder / "placeless")
    return folder


# What is made of a result once more differs in its time stamps alone.
STAMPED = {"geopackage", "omx", "omx-times"}


@pytest.mark.parametrize("kind", ["placed", "placeless"])
@pytest.mark.parametrize("key", EXPORTS)
def test_a_format_is_written_or_refused(run, kept, tmp_path, kind, key):
    result, path = load_result(kept / kind), tmp_path / "file"
    code, out, err = run("flows", kept / kind, "--format", key, "--out", path)
    if EXPORTS[key].available(result):
        assert (code, err) == (0, "")
        if key not in STAMPED:
            assert path.read_bytes() == EXPORTS[key].make(ExportInput(result, WHOLE_DAY))
    else:
        assert (code, out, path.exists()) == (2, "", False)
        assert tiny.is_one_sentence(err.removeprefix("agg-core: ").removesuffix("\n"))


@pytest.mark.parametrize(
    ("asked", "moment"), [("8:00", counted.MORNING), ("23:00", counted.NIGHT), (WHOLE_DAY, None)]
)
def test_a_moment_can_be_chosen(run, kept, tmp_path, asked, moment):
    path = tmp_path / "od.csv"
    words = ["flows", kept / "placed", "--format", "od-csv", "--time", asked, "--out", path]
    assert run(*words)[0] == 0
    found = pd.read_csv(path, index_col="origin").to_numpy()
    for (origin, dest), (count, *_) in counted.flows_of(moment or WHOLE_DAY).items():
        assert found[origin, dest] == pytest.approx(count)


@pytest.mark.parametrize(
    "words", [["--time", "12:00"], ["--time", "noon"], ["--source", "counted"]]
)
def test_what_flows_from_counts_do_not_have_is_refused(run, kept, words):
    code, out, err = run("flows", kept / "placed", "--format", "od-csv", "--out", "-", *words)
    assert (code, out) == (2, "")
    assert tiny.is_one_sentence(err.removeprefix("agg-core: ").removesuffix("\n"))


def test_trials_of_a_kept_run_are_not_made_again(run, file, tmp_path):
    quick = [*QUICK, "--replicates", "0", "--json"]
    code, first, _ = run("learn", file, *quick, "--save", tmp_path / "first")
    assert code == 0
    code, again, err = run("learn", file, *quick, "--like", tmp_path / "first")
    assert (code, err) == (0, "")
    told, before = strict_json(again), strict_json(first)
    assert told.pop("remembered") == len(load_result(tmp_path / "first").remembered) > 0
    assert 0 < told.pop("told_s")[1] < before.pop("told_s")[1]
    for varies in ("wall_s", "peak_mb"):
        told.pop(varies), before.pop(varies)
    assert told == before


def test_a_run_of_other_settings_is_of_no_use_and_that_is_said(run, file, tmp_path):
    quick = ["learn", file, *QUICK[:-1]]
    first = tmp_path / "first"
    assert run(*quick, 4, "--replicates", "0", "--save", first)[0] == 0
    code, again, err = run(*quick, 5, "--replicates", "0", "--json", "--like", first)
    assert (code, strict_json(again)["remembered"]) == (0, 0)
    assert str(first) in err


def test_like_takes_a_kept_run_alone(run, file, tmp_path):
    code, _, err = run("learn", file, *QUICK, "--like", tmp_path / "nothing")
    assert code == 2
    assert only_sentence(err)
