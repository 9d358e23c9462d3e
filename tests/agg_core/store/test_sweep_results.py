"""The result of a sweep on disk: what comes back, and what is refused."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from agg_core.store.codec import load_sweep, save_sweep
from agg_core.store.result_files import ARRAYS_FILE, RESULT_FILE, write_arrays, write_result
from agg_core.study.sweeps import FIGURES, Sweep, SweepResult, SweepRow
from tests.agg_core import tiny
from tests.faults import refused

SWEEP = Sweep(tiny.settings(), "grid", ("2x2", "3x3", "4x4"))
ROWS = (
    SweepRow("2x2", learner="cfb", movers=0.1 + 0.2, delta_nll=math.inf, cpu_s=1e-300),
    SweepRow("3x3", fault="It failed: 失敗.", code="learning-failed"),
    SweepRow("4x4", learner="sampling", movers=1 / 3, cpc=-0.0),
)
RESULT = SweepResult(SWEEP, ROWS, 12.5)


@pytest.fixture
def saved(tmp_path):
    save_sweep(RESULT, tmp_path / "result")
    return tmp_path / "result"


def test_every_figure_comes_back_to_the_bit(saved):
    found = load_sweep(saved)
    assert (found.sweep, found.wall_s) == (SWEEP, 12.5)
    for one, other in zip(found.rows, ROWS, strict=True):
        assert (one.value, one.learner, one.fault, one.code) == (
            other.value, other.learner, other.fault, other.code,
        )  # fmt: skip
        mine, theirs = (np.array([*row.figures.values()]) for row in (one, other))
        assert mine.tobytes() == theirs.tobytes()
    assert sorted(path.name for path in saved.iterdir()) == [ARRAYS_FILE, RESULT_FILE]


@pytest.mark.parametrize("name", [ARRAYS_FILE, RESULT_FILE])
def test_a_file_that_is_cut_altered_or_gone_is_one_sentence(saved, name):
    path = saved / name
    whole = path.read_bytes()
    altered = bytearray(whole)
    altered[len(altered) // 2] ^= 0xFF
    for content in (b"", whole[:-10], bytes(altered)):
        path.write_bytes(content)
        with refused("result-damaged"):
            load_sweep(saved)
    path.unlink()
    with refused("result-damaged"):
        load_sweep(saved)


def forged(folder, change_about=None, change_figures=None):
    """A result whose files were sealed anew after they were changed."""
    about = json.loads((folder / RESULT_FILE).read_text())
    with np.load(folder / ARRAYS_FILE) as arrays:
        figures = dict(arrays)
    for name in ("files", "digest"):
        del about[name]
    (change_about or (lambda _: None))(about)
    (change_figures or (lambda _: None))(figures)
    (folder / RESULT_FILE).unlink()
    write_arrays(figures, folder / ARRAYS_FILE)
    write_result(folder, about)


@pytest.mark.parametrize(
    ("about", "figures", "code"),
    [
        (lambda a: a["rows"].pop(), None, "result-damaged"),
        (lambda a: a["sweep"]["values"].append("5x5"), None, "result-damaged"),
        (lambda a: a["sweep"].update(name="nothing"), None, "unknown-option"),
        (lambda a: a.update(format=99), None, "other-format-version"),
        (lambda a: a.pop("sweep"), None, "result-damaged"),
        (None, lambda f: f.pop("movers"), "result-damaged"),
        (None, lambda f: f.update(movers=np.zeros(2)), "result-damaged"),
        (None, lambda f: f.update(movers=np.zeros((3, 3))), "result-damaged"),
        (None, lambda f: f.update(movers=np.zeros(10**7)), "result-damaged"),
        (None, lambda f: f.update(movers=np.array(["a", "b", "c"])), "result-damaged"),
    ],
)
def test_what_does_not_fit_together_is_refused(saved, about, figures, code):
    forged(saved, about, figures)
    with refused(code):
        load_sweep(saved)


def test_a_table_of_no_people_has_no_figures_of_counts():
    assert set(RESULT.columns) < set(FIGURES)
    assert "held_out_mae" not in RESULT.columns
    with_ends = replace(RESULT, rows=(replace(ROWS[0], movers_low=0.1, movers_high=0.5), *ROWS[1:]))
    assert {"movers_low", "movers_high"} <= set(with_ends.columns)
