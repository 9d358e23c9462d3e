"""One contestant of a race: ``python contestant.py WORK NAME`` prepares, then runs when asked to.

It is run as a file, so that the package beside which it runs may be an older one (PYTHONPATH says
which): it uses what has been there for long. For each line that it reads it does the work once and
writes a line of JSON: CPU and wall seconds, and what the work tells besides. Data come from one
seed, so that all contestants have the same.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["CONTESTANTS"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Work = Callable[[], dict[str, float] | None]

N_PEOPLE = 49_538
"""People of the paper's Tokyo."""

MEASURED_ROUNDS = 1_500


# ------------------------------------------------------------------ data


@cache
def _city() -> tuple[Any, IntArray]:
    """The paper's grid, and the cells (N, 3) of people who stay on it."""
    from agg_core.io import read_trajectories  # noqa: PLC0415
    from agg_core.made.samples import SAMPLES, make_sample  # noqa: PLC0415
    from agg_core.space.settings import GridSettings  # noqa: PLC0415
    from agg_core.tables.sequences import to_sequences  # noqa: PLC0415

    city = SAMPLES["tokyo_commuters"]
    people = read_trajectories(make_sample(city.key, int(N_PEOPLE * 1.1)), tz=city.timezone)
    grid = GridSettings(*city.bounds, city.rows, city.cols).make()
    cells = to_sequences(people, grid, f"{city.step_minutes}min", 3, start="08:00").states
    return grid, cells[(cells < grid.n_cells).all(axis=1)][:N_PEOPLE]


@cache
def _groups(size: int) -> tuple[Any, Any]:
    """Groups of the city's people with 5 % noise, and where learning begins."""
    from agg_core.model.aggregates import aggregate  # noqa: PLC0415
    from agg_core.model.emissions import (  # noqa: PLC0415
        CategoricalEmission,
        grid_emission,
        observe,
    )
    from agg_core.model.hmm import HMM, distance_decay_transmat  # noqa: PLC0415

    grid, cells = _city()
    emission = grid_emission(grid, misclassify=0.05)
    start = HMM(
        np.full(grid.n_cells, 1 / grid.n_cells),
        distance_decay_transmat(grid),
        CategoricalEmission(emission),
    )
    return aggregate(observe(cells, emission, 0), size, grid.n_cells, 1), start


@cache
def _singles(n: int, length: int, d: int) -> tuple[Any, IntArray]:
    """A random model, dense in all parts, and symbols (n, length) of its people."""
    from agg_core.model.hmm import HMM, random_probs  # noqa: PLC0415

    rng = np.random.default_rng(0)
    hmm = HMM.categorical(*(random_probs(shape, rng) for shape in ((d,), (d, d), (d, d))))
    return hmm, np.asarray(hmm.sample(n, length, rng)[0])


SMALL, LARGE = (5_000, 5, 10), (5_000, 3, 224)


# ------------------------------------------------------------------ Baum-Welch of single people


def _ours(shape: tuple[int, int, int]) -> Work:
    from agg_core.learn.em import em_steps  # noqa: PLC0415
    from agg_core.learn.esteps.cfb import collective_forward_backward  # noqa: PLC0415
    from agg_core.model.aggregates import aggregate  # noqa: PLC0415

    hmm, symbols = _singles(*shape)
    singles = aggregate(symbols, 1, hmm.n_states)

    def run() -> dict[str, float]:
        state = next(em_steps(singles, hmm, inference=collective_forward_backward))
        return {"log_likelihood": -state.free_energy}

    return run


def _hmmlearn(shape: tuple[int, int, int]) -> Work:
    import logging  # noqa: PLC0415

    from hmmlearn.hmm import CategoricalHMM  # noqa: PLC0415

    logging.getLogger("hmmlearn").setLevel(logging.ERROR)  # it warns of every small data set
    hmm, symbols = _singles(*shape)
    flat, lengths = symbols.reshape(-1, 1), [symbols.shape[1]] * len(symbols)

    def run() -> dict[str, float]:
        peer = CategoricalHMM(hmm.n_states, n_iter=1, init_params="", implementation="scaling")
        peer.startprob_, peer.transmat_ = hmm.startprob.copy(), hmm.transmat.copy()
        peer.emissionprob_ = hmm.emission.emissionprob.copy()
        peer.n_features = hmm.emission.emissionprob.shape[1]
        peer.fit(flat, lengths)
        return {"log_likelihood": float(peer.monitor_.history[0])}

    return run


def _dynamax(shape: tuple[int, int, int]) -> Work:
    import jax  # noqa: PLC0415
    import jax.numpy as jnp  # noqa: PLC0415
    from dynamax.hidden_markov_model import CategoricalHMM  # noqa: PLC0415

    jax.config.update("jax_enable_x64", True)
    hmm, symbols = _singles(*shape)
    d, n_symbols = hmm.emission.emissionprob.shape
    peer = CategoricalHMM(d, 1, n_symbols)
    params, props = peer.initialize(
        initial_probs=jnp.asarray(hmm.startprob), transition_matrix=jnp.asarray(hmm.transmat),
        emission_probs=jnp.asarray(hmm.emission.emissionprob)[:, None, :],
    )  # fmt: skip
    seen = jnp.asarray(symbols)[:, :, None]

    @jax.jit
    def step(params: Any, seen: Any) -> Any:
        counted, log_likelihoods = jax.vmap(lambda one: peer.e_step(params, one))(seen)
        state = peer.initialize_m_step_state(params, props)
        return peer.m_step(params, props, counted, state)[0], log_likelihoods.sum()

    def run() -> dict[str, float]:
        _, log_likelihood = jax.block_until_ready(step(params, seen))
        return {"log_likelihood": float(log_likelihood)}

    return run


def _numpy(shape: tuple[int, int, int]) -> Work:
    """What one writes without a library: all people at once, step by step."""
    hmm, symbols = _singles(*shape)
    start, trans, emit = hmm.startprob, hmm.transmat, hmm.emission.emissionprob
    n, length = symbols.shape

    def run() -> dict[str, float]:
        ahead, scale = np.empty((length, n, len(start))), np.empty((length, n))
        shown = emit.T[symbols]
        here = np.broadcast_to(start, (n, len(start)))
        for t in range(length):
            here = here * shown[:, t]
            scale[t] = here.sum(axis=1)
            ahead[t] = here / scale[t][:, None]
            here = ahead[t] @ trans
        back, pairs, emission = np.ones((n, len(start))), np.zeros_like(trans), np.zeros_like(emit)
        for t in range(length - 1, -1, -1):
            posterior = ahead[t] * back
            np.add.at(emission.T, symbols[:, t], posterior)
            if t:
                pull = back * shown[:, t] / scale[t][:, None]
                pairs += ahead[t - 1].T @ pull
                back = pull @ trans.T
        pairs *= trans
        pairs /= pairs.sum(axis=1, keepdims=True)
        emission /= emission.sum(axis=1, keepdims=True)
        return {"log_likelihood": float(np.log(scale).sum())}

    return run


# ------------------------------------------------------------------ E-steps of groups


def _e_step(name: str, *, warm: bool = False, size: int = 20, sweeps: int = 30) -> Work:
    """One E-step of a learner on the city, cold or from where three iterations came to."""
    from agg_core.learn.em import em_steps  # noqa: PLC0415
    from agg_core.learn.learners import inference_named  # noqa: PLC0415

    inference = inference_named(name)
    groups, hmm = _groups(size)
    messages = None
    if warm:
        steps = em_steps(groups, hmm, inference=inference, fixed=("emission",))
        for _ in range(3):
            state = next(steps)
        hmm, messages = state.hmm, state.expected.messages
    table = hmm.emission.likelihoods(groups)

    def run() -> dict[str, float]:
        found = inference(hmm, groups, table, messages=messages, tol=1e-3, max_sweeps=sweeps)
        return {"sweeps": found.sweeps, "free_energy": found.free_energy}

    return run


def _many_cells(name: str) -> Work:
    """Four sweeps on 32 x 32 cells."""
    from agg_core import Grid  # noqa: PLC0415
    from agg_core.learn.learners import inference_named  # noqa: PLC0415
    from agg_core.model.aggregates import aggregate  # noqa: PLC0415
    from agg_core.model.emissions import CategoricalEmission, grid_emission  # noqa: PLC0415
    from agg_core.model.hmm import HMM, distance_decay_transmat  # noqa: PLC0415

    grid = Grid.from_bbox(139.3, 35.4, 140.2, 35.95, rows=32, cols=32)
    emission = CategoricalEmission(grid_emission(grid, misclassify=0.05))
    hmm = HMM(np.full(grid.n_cells, 1 / grid.n_cells), distance_decay_transmat(grid), emission)
    groups = aggregate(hmm.sample(4_000, 3, 0)[0], 20, grid.n_cells, 1)
    table, inference = emission.likelihoods(groups), inference_named(name)

    def run() -> None:
        inference(hmm, groups, table, tol=1e-12, max_sweeps=4)

    return run


def _gemm() -> Work:
    """As many multiplications as a product of matrices of the city's size has."""
    rng = np.random.default_rng(0)
    people, transmat = rng.random((2_477, 224)), rng.random((224, 224))

    def run() -> dict[str, float]:
        for _ in range(40):
            people @ transmat
        return {"gflop": 40 * 2 * 2_477 * 224 * 224 / 1e9}

    return run


def support_gflop(sweeps: float) -> float:
    """Operations of so many sweeps of CFB in products of transitions on the supports alone."""
    groups, hmm = _groups(20)
    reached = (hmm.emission.emissionprob > 0).T
    shown = groups.to_dense().reshape(-1, groups.n_symbols) > 0
    n = ((shown @ reached.astype(float)) > 0).sum(axis=1).reshape(-1, groups.length)
    # Each block of transitions is gone through once forward and once backward.
    return float(2 * 2 * (n[:, :-1] * n[:, 1:]).sum() * sweeps / 1e9)


# ------------------------------------------------------------------ sampling


def _sampling() -> Work:
    """Two rounds on all groups, as between two M-steps."""
    from agg_core.learn.esteps.sampling import sampled_counts  # noqa: PLC0415

    groups, hmm = _moving(20)
    table = hmm.emission.likelihoods(groups)
    begun = sampled_counts(hmm, groups, table, max_sweeps=30, seed=1).messages

    def run() -> None:
        sampled_counts(hmm, groups, table, messages=begun, max_sweeps=2)

    return run


@cache
def _moving(size: int) -> tuple[Any, Any]:
    """Groups, and transitions after some iterations, as a fit has them most of the time."""
    from agg_core.learn.em import em_steps  # noqa: PLC0415
    from agg_core.learn.learners import inference_named  # noqa: PLC0415

    groups, hmm = _groups(size)
    steps = em_steps(groups, hmm, inference=inference_named("cfb"), fixed=("emission",))
    for _ in range(3):
        state = next(steps)
    return groups, state.hmm


def _mixing() -> Work:
    """Integrated autocorrelation times, in rounds, of what flows are summed to."""
    from agg_core.learn.esteps.sampling import sampled_counts  # noqa: PLC0415

    groups, hmm = _moving(20)
    groups = groups[:75]
    grid, _ = _city()
    table = hmm.emission.likelihoods(groups)
    places = grid.centroids_m
    far = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2)).ravel()
    mixed = np.random.default_rng(0).normal(size=(12, far.size))

    def run() -> dict[str, float]:
        messages = sampled_counts(hmm, groups, table, max_sweeps=300, seed=1).messages
        series = []
        for _ in range(MEASURED_ROUNDS):
            found = sampled_counts(hmm, groups, table, messages=messages, max_sweeps=1)
            messages, moves = found.messages, found.transitions
            flat = moves.ravel()
            series.append([np.trace(moves), flat @ far, *(mixed @ flat)])
        times = [_autocorrelation_time(np.array(values)) for values in zip(*series, strict=True)]
        return {"stay": times[0], "distance": times[1], "mixtures": float(np.median(times[2:]))}

    return run


def _autocorrelation_time(values: FloatArray) -> float:
    """1 + twice the sum of autocorrelations, as far as sums of pairs are positive (Geyer 1992)."""
    apart, n = values - values.mean(), len(values)
    spectrum = np.fft.rfft(apart, 2 * n)
    lags = np.fft.irfft(spectrum * np.conj(spectrum))[:n]
    total = -1.0
    for lag in range(0, n - 1, 2):
        pair = (lags[lag] + lags[lag + 1]) / lags[0]
        if pair < 0:
            break
        total += 2 * pair
    return max(float(total), 1.0)


# ------------------------------------------------------------------ whole fits


def _fit(iterations: int = 50) -> Work:
    """The paper's city at M = 20 by CFB."""
    from agg_core.learn.em import em_steps  # noqa: PLC0415
    from agg_core.learn.learners import inference_named  # noqa: PLC0415

    groups, hmm = _groups(20)

    def run() -> dict[str, float]:
        steps = em_steps(groups, hmm, inference=inference_named("cfb"), fixed=("emission",))
        for _ in range(iterations):
            state = next(steps)
        return {"free_energy": state.free_energy}

    return run


def _thousands_of_cells(learner: str) -> Work:
    """An iteration of a learner on 100 x 100 cells: 1,000 groups of 500 people who go near."""
    from agg_core.learn.learners import learner_steps  # noqa: PLC0415
    from agg_core.model.aggregates import aggregate  # noqa: PLC0415
    from agg_core.model.emissions import CategoricalEmission, near_emission  # noqa: PLC0415
    from agg_core.model.hmm import HMM, distance_decay_transmat  # noqa: PLC0415
    from agg_core.space.build import Grid  # noqa: PLC0415

    grid = Grid.from_bbox(139.5, 35.5, 140.05, 35.95, rows=100, cols=100)
    d, reach_m = grid.n_cells, 4.4 * float(np.mean(grid.cell_size_m))
    emission = CategoricalEmission(near_emission(grid, misclassify=0.05))
    hmm = HMM(np.full(d, 1 / d), distance_decay_transmat(grid, reach_m=reach_m), emission)
    groups = aggregate(hmm.sample(500_000, 3, 0)[0], 500, d, 1)
    steps = learner_steps(learner, groups, hmm, fixed=("emission",), random_state=0)

    def run() -> dict[str, float]:
        state = next(steps)
        return {
            "moves_a_cell": state.hmm.transmat.nnz / d, "sweeps": state.sweeps,
            "groups_unsettled": state.n_unconverged,
        }  # fmt: skip

    return run


def _study() -> Work:
    """The sample as the pages learn it if nothing is changed."""
    from agg_core.io import read_trajectories  # noqa: PLC0415
    from agg_core.made.samples import SAMPLES, sample_path, sample_settings  # noqa: PLC0415
    from agg_core.study.people import StudyResult, study_steps  # noqa: PLC0415

    city = SAMPLES["tokyo_commuters"]
    people = read_trajectories(sample_path(city.key), tz=city.timezone)

    def run() -> None:
        *_, result = study_steps(people, sample_settings(city.key))
        assert isinstance(result, StudyResult)

    return run


AT_ONCE = {"sampling, mixing", "sample by default"}
"""Work so long that nobody warms up for it."""

CONTESTANTS: dict[str, dict[str, Callable[[], Work]]] = {
    "baum-welch, d = 10": {
        "ours": lambda: _ours(SMALL),
        "hmmlearn": lambda: _hmmlearn(SMALL),
        "dynamax": lambda: _dynamax(SMALL),
        "numpy": lambda: _numpy(SMALL),
    },
    "baum-welch, d = 224": {
        "ours": lambda: _ours(LARGE),
        "hmmlearn": lambda: _hmmlearn(LARGE),
        "dynamax": lambda: _dynamax(LARGE),
        "numpy": lambda: _numpy(LARGE),
    },
    "single people, local noise": {"ours": lambda: _e_step("cfb", size=1)},
    "cfb, cold": {"ours": lambda: _e_step("cfb"), "gemm": _gemm},
    "cfb, warm": {"ours": lambda: _e_step("cfb", warm=True)},
    "cavity, three sweeps": {
        "ours": lambda: _e_step("cavity", sweeps=3),
        "cfb": lambda: _e_step("cfb", sweeps=3),
    },
    "cavity, d = 1,024": {
        "ours": lambda: _many_cells("cavity"),
        "cfb": lambda: _many_cells("cfb"),
    },
    "sampling": {"ours": _sampling},
    "sampling, mixing": {"ours": _mixing},
    "tokyo, 50 iterations": {"ours": _fit},
    "10,000 cells, cfb": {"ours": lambda: _thousands_of_cells("cfb")},
    "10,000 cells, sampling": {"ours": lambda: _thousands_of_cells("sampling")},
    "sample by default": {"ours": _study},
}
"""Work by its name, and by contestant what prepares it and gives what is timed."""


def main() -> None:
    """Prepare, warm up once, then run once for each line that comes."""
    from agg_core.base.memory import peak_bytes  # noqa: PLC0415

    work, name = sys.argv[1:]
    run = CONTESTANTS[work][name]()
    answers, sys.stdout = sys.stdout, sys.stderr
    if work not in AT_ONCE:
        run()
    print("{}", file=answers, flush=True)
    for _ in sys.stdin:
        cpu, wall = time.process_time(), time.perf_counter()
        told = run() or {}
        told["cpu_s"] = time.process_time() - cpu
        told["wall_s"] = time.perf_counter() - wall
        told["peak_mb"] = peak_bytes() / 1e6
        print(json.dumps(told), file=answers, flush=True)


if __name__ == "__main__":
    main()
