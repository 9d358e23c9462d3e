"""What docs/ tell a reader to type works as it stands there."""

from __future__ import annotations

import json
import logging
import os
import re
import runpy
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import openmatrix
import pandas as pd
import pytest
from hmmlearn.hmm import CategoricalHMM

import agg_core
from agg_core.base.threads import one_thread

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "docs" / "examples"


def test_counts_become_flows_on_the_command_line(tmp_path):
    text = (ROOT / "docs" / "counts.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    commands = block.replace("python -m", f"'{sys.executable}' -m")
    done = subprocess.run(
        ["sh", "-e", "-c", commands], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"^1 day, 47 pairs of successive counts, \d+ cells, 20,000\.0 people",
                     done.stdout, flags=re.MULTILINE)  # fmt: skip
    (path,) = tmp_path.glob("od-csv*.csv")
    flows = pd.read_csv(path, index_col="origin")
    # All that go somewhere, or stay, are the 20,000 people of the sample.
    assert flows.to_numpy().sum() == pytest.approx(20_000, rel=1e-3)


def test_evidence_on_the_command_line(tmp_path):
    text = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    commands = block.replace("python -m", f"'{sys.executable}' -m")
    done = subprocess.run(
        ["sh", "-e", "-c", commands.replace("data/runs", str(ROOT / "data" / "runs"))],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").read_bytes().startswith(b"<!doctype html>")


def run(name):
    """What an example has when it is done."""
    with one_thread():
        return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def test_every_example_is_in_a_test_and_opens_as_a_notebook():
    text = Path(__file__).read_text(encoding="utf-8")
    paths = sorted(EXAMPLES.glob("*.py"))
    assert paths
    for path in paths:
        assert f'run("{path.stem}")' in text
        assert len(re.findall(r"^# %% \w", path.read_text(encoding="utf-8"), re.MULTILINE)) > 2


def test_the_paper_result_in_small(capsys):
    it = run("paper_result")
    learned, made, n, length = it["learned"], it["made"], it["N_PEOPLE"], it["LENGTH"]
    pairs = Counter(pair for walk in it["states"].tolist() for pair in pairwise(walk))
    counted = [[pairs[i, j] / (length - 1) for j in range(it["d"])] for i in range(it["d"])]
    np.testing.assert_allclose(made, counted)

    # Nothing is hidden in groups of one: what is learned is what hmmlearn learns of them.
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    peer = CategoricalHMM(it["d"], n_iter=15, tol=0, params="st", init_params="")
    peer.startprob_, peer.transmat_ = it["start"]["startprob"], it["start"]["transmat"]
    peer.emissionprob_, peer.n_features = it["emission"], it["d"]
    peer.fit(it["seen"].reshape(-1, 1), [length] * n)
    at, flows = peer.startprob_, 0
    for _ in range(length - 1):
        flows = flows + n / (length - 1) * at[:, None] * peer.transmat_
        at = at @ peer.transmat_
    for learner in ("cfb", "auto"):
        np.testing.assert_allclose(learned[1, learner], flows, atol=0.05)

    off = ~np.eye(it["d"], dtype=bool)
    errors, ratios = {}, {}
    for case, flow in learned.items():
        assert flow.sum() == pytest.approx(n)  # everybody goes somewhere, or stays
        both = flow[off].sum() + made[off].sum()
        errors[case] = np.abs(flow - made)[off].sum() / both
        ratios[case] = flow[off].sum() / made[off].sum()
    # The paper: the larger the groups, the larger the error.
    by_size = [errors[size, "cfb"] for size in (1, 5, 20, 100)]
    assert by_size == sorted(by_size)
    for size in (5, 20, 100):
        assert ratios[size, "cfb"] > 1.5
        assert ratios[size, "auto"] == pytest.approx(1, abs=0.15)
        assert errors[size, "auto"] < errors[size, "cfb"]

    said = capsys.readouterr().out
    assert f"{made[off].sum():.0f} people per step of {n:,}" in said
    printed = [line.split() for line in said.splitlines()[2:]]
    assert len(printed) == len(learned)
    for size, learner, _, ratio, error in printed:
        assert float(ratio) == pytest.approx(ratios[int(size), learner], abs=6e-4)
        assert float(error) == pytest.approx(errors[int(size), learner], abs=6e-4)


def test_a_file_of_ones_own_becomes_flows_and_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    it = run("your_own_file")
    result = it["result"]
    # Who is in which block at 8 and at 9, read from the file by hand.
    seen = pd.read_csv("my_people.csv")
    seen["block"] = (seen["lon"] > 139.7) * 1 + (seen["lon"] > 139.8) * 1 + (seen["lat"] > 35.6) * 3
    at = {h: seen.loc[seen["time"] == f"2024-05-01 {h}:00"].set_index("user_id")["block"]
          for h in ("08", "09")}  # fmt: skip
    truth = pd.crosstab(at["08"], at["09"]).to_numpy()
    np.testing.assert_array_equal(result.matrix("08:00", "counted")[:6, :6], truth)

    estimate = result.matrix("08:00")
    assert estimate.sum() == pytest.approx(len(at["08"]))  # nobody is lost
    off = ~np.eye(len(estimate), dtype=bool)
    moved = truth.sum() - np.trace(truth)
    assert estimate[off].sum() == pytest.approx(moved, rel=0.2)
    shown = it["table"]
    assert shown["count"].min() >= 10
    assert shown["count"].sum() == pytest.approx(estimate[estimate >= 10].sum())

    (lines,) = (tmp_path / "my_flows").glob("*.geojson")
    features = json.loads(lines.read_text(encoding="utf-8"))["features"]
    assert len(features) >= np.count_nonzero(estimate[off])
    for feature in features:
        origin, dest = (feature["properties"][end] for end in ("origin", "dest"))
        assert feature["properties"]["estimate"] == pytest.approx(estimate[origin, dest], abs=0.01)
        middles = [
            (139.65 + 0.1 * (cell % 3), 35.55 + 0.1 * (cell // 3)) for cell in (origin, dest)
        ]
        np.testing.assert_allclose(feature["geometry"]["coordinates"], middles, atol=1e-6)
    (path,) = (tmp_path / "my_flows").glob("*.omx")
    with openmatrix.open_file(str(path)) as file:
        np.testing.assert_allclose(file["estimate"][:], estimate, rtol=1e-6)
        np.testing.assert_array_equal(file["counted"][:6, :6], truth)
    said = capsys.readouterr().out
    assert "1,500 people, 7,500 fixes" in said
    assert f"Moves learned / counted {estimate[off].sum() / moved:.2f}" in said


def test_counts_become_flows_with_intervals(capsys):
    it = run("counts_to_flows")
    table, matrix, flows = it["table"], it["matrix"].to_numpy(), it["flows"]
    # As an hour begins there are, on average, as many in a cell as were counted there.
    begins = table.loc[~table["time"].str.endswith("18:00")]
    people = begins.groupby("cell")["count"].mean()[it["CELLS"]]
    np.testing.assert_allclose(matrix.sum(axis=1), people, rtol=1e-6)
    assert matrix.sum() == pytest.approx(2_000)
    # By hand: of those of a morning, chances of the next hour lead on, eleven times.
    at, chances = np.array(it["MORNING"], dtype=float), np.array(it["TRUE_TRANSMAT"])
    expected = np.zeros((3, 3))
    for _ in range(12):
        expected += at[:, None] * chances / 12
        at = at @ chances
    np.testing.assert_allclose(it["moved"], expected, atol=3.0)
    off = ~np.eye(3, dtype=bool)
    assert matrix[off].sum() == pytest.approx(expected[off].sum(), rel=0.1)
    np.testing.assert_allclose(matrix, expected, atol=25.0)

    assert (flows["low"] <= flows["count"]).all()
    assert (flows["count"] <= flows["high"]).all()
    assert len(flows) == 9
    said = capsys.readouterr().out
    assert "168 pairs of successive counts of 14 days" in said  # 14 days of 12 hours
    assert "people per hour" in said


def test_the_reference_is_that_of_the_docstrings():
    made = runpy.run_path(str(ROOT / "docs" / "make_api.py"))["page"]()
    assert (ROOT / "docs" / "api.md").read_text(encoding="utf-8") == made, "run make docs"


def test_the_reference_shows_signature_sections_and_methods():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    (part,) = re.findall(r"^## aggregate\n(.*?)^## ", text, flags=re.DOTALL | re.MULTILINE)
    assert "    group_size: int,\n" in part
    assert "    *,\n    within: npt.ArrayLike | None = None,\n) -> Aggregates\n" in part
    assert "```python\n>>> import agg_core\n" in part
    assert "- `n_symbols` (int): Number of symbols S.\n" in part
    assert "**Raises**\n\n- `InputError`: If the group size is below 1" in part
    headings = set(re.findall(r"^###? ([\w.]+)", text, flags=re.MULTILINE))
    assert set(agg_core.__all__) - {"__version__"} <= headings
    assert {"Grid.from_bbox", "AggregateHMM.fit", "AggregateHMM.startprob_", "FlowResult.table",
            "Aggregates.sizes"} <= headings  # fmt: skip
    assert "AggregateHMM.set_params" not in headings  # scikit-learn's own


def test_results_are_of_the_present_default_and_name_their_command():
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    names = re.findall(r"^<!-- (\w+) -->$", text, flags=re.MULTILINE)
    made = re.findall(r"weight of the prior ([\d.]+): `(.*)`", text)
    assert names
    assert [command.split()[:5] for _, command in made] == [
        ["python", "-m", "benchmarks", "group-sizes", name] for name in names
    ]
    assert {float(weight) for weight, _ in made} == {agg_core.AggregateHMM().prior}


def test_links_between_the_pages_lead_to_files():
    links = [
        (page, target)
        for page in (ROOT / "docs").glob("*.md")
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    ]
    assert links
    for page, target in links:
        assert (page.parent / target).exists(), (page.name, target)
