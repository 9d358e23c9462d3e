"""Time and memory of the learner: ``python -m benchmarks [tokyo] [peers]``.

``tokyo`` fits the paper's city (49,538 people, 14 x 16 cells, windows of 3 steps) at M = 20 and
M = 1, 30 iterations each, each in a process of its own so that its peak memory is its own.
``peers`` times one Baum-Welch iteration at M = 1 beside hmmlearn on the same data in one run.
``python -m benchmarks group-sizes --help`` tells of the learners' accuracy at every group size.
``python -m benchmarks counts --help`` tells of flows learned from counts alone.
``python -m benchmarks flow-map`` tells how fast the flow map draws in a browser.
``python -m benchmarks big-files --help`` counts files larger than memory, beside DuckDB.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from agg_core.base.memory import peak_bytes
from agg_core.base.threads import wait_asleep
from agg_core.io import read_trajectories
from agg_core.learn.em import em_steps
from agg_core.learn.esteps.cfb import collective_forward_backward
from agg_core.made.samples import SAMPLES, make_sample
from agg_core.model.aggregates import aggregate
from agg_core.model.emissions import CategoricalEmission, grid_emission, observe
from agg_core.model.hmm import HMM, distance_decay_transmat, random_probs
from agg_core.space.settings import GridSettings
from agg_core.tables.sequences import to_sequences
from benchmarks.big_files import command as big_files
from benchmarks.counts import command as counts
from benchmarks.flow_map import command as flow_map
from benchmarks.group_sizes import command as group_sizes
from benchmarks.lasting import command as lasting

CITY = SAMPLES["tokyo_commuters"]
N_PEOPLE = 49_538
ITERATIONS = 30


def tokyo_fit(group_size: int) -> dict[str, float]:
    """One fit of the paper's size; figures of this process."""
    # More people than needed, since those who leave the grid do not count here.
    trajectories = read_trajectories(make_sample(CITY.key, int(N_PEOPLE * 1.1)), tz=CITY.timezone)
    grid = GridSettings(*CITY.bounds, CITY.rows, CITY.cols).make()
    sequences = to_sequences(trajectories, grid, f"{CITY.step_minutes}min", 3, start="08:00")
    inside = sequences.states[(sequences.states < grid.n_cells).all(axis=1)][:N_PEOPLE]
    emission = grid_emission(grid, misclassify=0.05)
    observed = aggregate(observe(inside, emission, 0), group_size, grid.n_cells, 0)
    start = HMM(
        np.full(grid.n_cells, 1 / grid.n_cells),
        distance_decay_transmat(grid),
        CategoricalEmission(emission),
    )
    # Compile before the clock starts; what that takes is said apart.
    began = time.perf_counter()
    small = aggregate(inside[:2], min(group_size, 2), grid.n_cells, 0)
    next(em_steps(small, start, inference=collective_forward_backward, fixed=("emission",)))
    prepared = time.perf_counter()
    sweeps = 0.0
    for state in em_steps(
        observed, start, inference=collective_forward_backward, fixed=("emission",)
    ):
        sweeps += state.sweeps / ITERATIONS
        if state.iteration == ITERATIONS:
            break
    return {
        "people": len(inside),
        "states": grid.n_cells,
        "steps": 3,
        "group_size": group_size,
        "iterations": ITERATIONS,
        "mean_sweeps": round(sweeps, 2),
        "prepare_s": round(prepared - began, 2),
        "fit_s": round(time.perf_counter() - prepared, 2),
        "peak_mb": round(peak_bytes() / 1e6),
    }


def tokyo() -> None:
    """Both fits, each in its own process."""
    print(f"Tokyo-size fit: {N_PEOPLE:,} people, {CITY.rows} x {CITY.cols} cells, T = 3")
    for group_size in (20, 1):
        done = subprocess.run(  # this module again, with a number of ours
            [sys.executable, "-m", "benchmarks", "--one-fit", str(group_size)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        print("  " + done.stdout.strip())


def peers() -> None:
    """One iteration at M = 1 beside hmmlearn: emission learned, median of 5."""
    from hmmlearn.hmm import CategoricalHMM  # noqa: PLC0415  # a development dependency

    logging.getLogger("hmmlearn").setLevel(logging.ERROR)  # it warns of every small data set
    print("One Baum-Welch iteration at M = 1, median of 5 (hmmlearn: scaling)")
    for n, length, d in ((5_000, 5, 10), (2_000, 3, 224)):
        rng = np.random.default_rng(0)
        start, trans, emit = (random_probs(s, rng) for s in ((d,), (d, d), (d, d)))
        hmm = HMM.categorical(start, trans, emit)
        symbols, _ = hmm.sample(n, length, rng)
        peer = CategoricalHMM(d, n_iter=1, init_params="", implementation="scaling")
        peer.startprob_, peer.transmat_, peer.emissionprob_ = start, trans, emit
        peer.n_features = d

        def theirs(peer: CategoricalHMM = peer, symbols: np.ndarray = symbols) -> None:
            peer.fit(symbols.reshape(-1, 1), [symbols.shape[1]] * len(symbols))

        singles = aggregate(symbols, 1, d)

        def ours(singles=singles, hmm: HMM = hmm) -> None:
            next(em_steps(singles, hmm, inference=collective_forward_backward))

        mine, other = _median(ours), _median(theirs)
        print(
            f"  N = {n:,}, T = {length}, d = {d}: ours {mine:.3f} s, hmmlearn {other:.3f} s, "
            f"ratio {other / mine:.1f}"
        )


def _median(run: Callable[[], None], times: int = 5) -> float:
    run()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def main() -> None:
    """Run the chosen benchmarks, without a choice those of speed."""
    if sys.argv[1:2] == ["group-sizes"]:
        sys.exit(group_sizes.main(sys.argv[2:]))
    if sys.argv[1:2] == ["counts"]:
        sys.exit(counts.main(sys.argv[2:]))
    if sys.argv[1:2] == ["flow-map"]:
        flow_map()
        return
    if sys.argv[1:2] == ["lasting"]:
        sys.exit(lasting.main(sys.argv[2:]))
    if sys.argv[1:2] == ["big-files"]:
        sys.exit(big_files.main(sys.argv[2:]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", nargs="*", choices=["tokyo", "peers", []], default=[])
    parser.add_argument("--one-fit", type=int, metavar="M", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one_fit:
        print(json.dumps(tokyo_fit(chosen.one_fit)))
        return
    for name, run in (("tokyo", tokyo), ("peers", peers)):
        if name in chosen.which or not chosen.which:
            run()


if __name__ == "__main__":
    wait_asleep()
    main()
