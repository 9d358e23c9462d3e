"""Flow tables: who goes from which cell to which, and how well an estimate meets the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from agg_core.base.errors import InputError
from agg_core.base.moves import (
    AnyMoves,
    as_moves,
    at_origin,
    ends_of,
    entries,
    moves_like,
    places_of,
    table_of_pairs,
)
from agg_core.space.grid import BaseGrid
from agg_core.tables.sequences import Sequences

__all__ = [
    "Direction",
    "FlowComparison",
    "Tables",
    "cell_totals",
    "common_part",
    "compare_flows",
    "count_matrix",
    "count_matrix_at",
    "counts_of",
    "filled_like",
    "flow_differences",
    "flow_matrix",
    "flow_matrix_at",
    "flow_table",
    "matrix_rows",
    "places_of_ends",
    "ratio",
    "require_columns",
    "with_places",
]

Direction = Literal["in", "out", "both"]
"""Which flows of a cell: those into it, out of it, or all."""

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Tables: TypeAlias = "npt.ArrayLike | sparse.csr_array | Sequence[AnyMoves]"
"""Flows of one moment (d, d), whole or sparse, or of several, (n, d, d) or one after the other."""

COLUMNS = ["origin", "dest", "count", "origin_lon", "origin_lat", "dest_lon", "dest_lat"]


@overload
def flow_matrix(
    startprob: npt.ArrayLike, transmat: sparse.csr_array, population: float, length: int
) -> sparse.csr_array: ...


@overload
def flow_matrix(
    startprob: npt.ArrayLike, transmat: npt.ArrayLike, population: float, length: int
) -> FloatArray: ...


@overload
def flow_matrix(
    startprob: npt.ArrayLike, transmat: AnyMoves, population: float, length: int
) -> AnyMoves: ...


def flow_matrix(
    startprob: npt.ArrayLike,
    transmat: npt.ArrayLike | sparse.csr_array,
    population: float,
    length: int,
) -> AnyMoves:
    """People per step from each state to each, (d, d), under a Markov chain of ``length`` steps.

    >>> import agg_core
    >>> agg_core.flow_matrix([1, 0], [[0.75, 0.25], [0, 1]], population=100, length=2)
    array([[75., 25.],
           [ 0.,  0.]])

    An entry is the population times the mean over the length - 1 steps of
    P(origin at t, dest at t + 1). Stays are on the diagonal; the outside, if any, is the last.
    Of sparse transitions (``scipy.sparse``) they are sparse, with the same pattern.

    Raises
    ------
    InputError
        If ``length`` is below 2: one step has no moves.
    """
    if length < 2:
        raise InputError(
            f"Flows need windows of 2 steps or more; the length was {length}.",
            code="value-out-of-range",
        )
    trans = as_moves(transmat)
    people = population / (length - 1) * _where_people_are(startprob, trans, length - 1).sum(axis=0)
    return moves_like(trans, at_origin(trans, people) * entries(trans))


@overload
def flow_matrix_at(
    startprob: npt.ArrayLike, transmat: sparse.csr_array, population: float, step: int
) -> sparse.csr_array: ...


@overload
def flow_matrix_at(
    startprob: npt.ArrayLike, transmat: npt.ArrayLike, population: float, step: int
) -> FloatArray: ...


@overload
def flow_matrix_at(
    startprob: npt.ArrayLike, transmat: AnyMoves, population: float, step: int
) -> AnyMoves: ...


def flow_matrix_at(
    startprob: npt.ArrayLike,
    transmat: npt.ArrayLike | sparse.csr_array,
    population: float,
    step: int,
) -> AnyMoves:
    """People from each state to each between ``step`` and the next, (d, d), from step 0 on.

    `flow_matrix` is the mean of these.
    """
    trans = as_moves(transmat)
    people = population * _where_people_are(startprob, trans, step + 1)[step]
    return moves_like(trans, at_origin(trans, people) * entries(trans))


def _where_people_are(startprob: npt.ArrayLike, transmat: AnyMoves, n_steps: int) -> FloatArray:
    """P(state at t), (n_steps, d)."""
    at = [np.asarray(startprob, dtype=np.float64)]
    for _ in range(n_steps - 1):
        at.append(at[-1] @ transmat)
    return np.stack(at)


@overload
def count_matrix(
    sequences: Sequences, n_states: int | None = ..., *, as_sparse: Literal[False] = ...
) -> FloatArray: ...


@overload
def count_matrix(
    sequences: Sequences, n_states: int | None = ..., *, as_sparse: bool
) -> AnyMoves: ...


def count_matrix(
    sequences: Sequences, n_states: int | None = None, *, as_sparse: bool = False
) -> AnyMoves:
    """People per step from each state to each, (d, d), counted from state sequences: the truth.

    >>> import agg_core
    >>> people = agg_core.read_trajectories(agg_core.sample_path())
    >>> grid = agg_core.Grid.from_bbox(139.5, 35.5, 140.0, 35.9, rows=2, cols=2)
    >>> sequences = agg_core.to_sequences(people, grid, step="30min", length=2, start="08:00")
    >>> int(agg_core.count_matrix(sequences).sum()) == len(sequences)
    True

    A mean over the T - 1 steps, as `flow_matrix` is. ``n_states`` is d where these people are a
    part of others who were in a state more, the outside. With ``as_sparse`` it is a sparse table of
    the moves that somebody made.
    """
    steps = sequences.states.shape[1] - 1
    d = n_states or sequences.n_states
    if as_sparse:
        states = sequences.states
        people = np.repeat(sequences.weights, steps)
        made = table_of_pairs(states[:, :-1].ravel(), states[:, 1:].ravel(), people, d)
        return moves_like(made, made.data / max(steps, 1))
    each = (count_matrix_at(sequences, step, d) for step in range(steps))
    counts = sum(each, np.zeros((d, d)))
    return np.asarray(counts / max(steps, 1))


@overload
def count_matrix_at(
    sequences: Sequences, step: int, n_states: int | None = ..., *, as_sparse: Literal[False] = ...
) -> FloatArray: ...


@overload
def count_matrix_at(
    sequences: Sequences, step: int, n_states: int | None = ..., *, as_sparse: bool
) -> AnyMoves: ...


def count_matrix_at(
    sequences: Sequences, step: int, n_states: int | None = None, *, as_sparse: bool = False
) -> AnyMoves:
    """People from each state to each between ``step`` and the next, (d, d); see `count_matrix`."""
    d = n_states or sequences.n_states
    origin, dest = sequences.states[:, step], sequences.states[:, step + 1]
    if as_sparse:
        return table_of_pairs(origin, dest, sequences.weights, d)
    counts = np.bincount(origin * d + dest, sequences.weights, d * d)
    return np.asarray(counts, dtype=np.float64).reshape(d, d)


def filled_like(
    moves: AnyMoves, origin: npt.ArrayLike, dest: npt.ArrayLike, count: npt.ArrayLike
) -> AnyMoves:
    """A table of the same pattern with these moves (n,), those of the same ends added up.

    Raises
    ------
    InputError
        If a move is none of the pattern.
    """
    place = places_of(moves, origin, dest)
    if (place < 0).any():
        raise InputError(
            f"{int((place < 0).sum()):,} flows go farther than the farthest move in a step; they "
            "belong to another study.",
            code="move-beyond-reach",
        )
    like = entries(moves)
    people = np.bincount(place, np.asarray(count, dtype=np.float64), like.size)
    return moves_like(moves, people.astype(np.float64).reshape(like.shape))


def matrix_rows(counts: npt.ArrayLike | sparse.csr_array, least: float = 0.0) -> pd.DataFrame:
    """Origin, dest and count of the flows (d, d) of ``least`` people or more, by origin and dest.

    A flow of nobody is no row whatever ``least`` is. Sums of such a table lack what is below
    ``least``: take sums and comparisons from the matrix.
    """
    matrix = as_moves(counts)
    people = entries(matrix)
    chosen = (people >= least) & (people != 0)
    origin, dest = ends_of(matrix, chosen)
    return pd.DataFrame({"origin": origin, "dest": dest, "count": people[chosen]})


def flow_table(
    counts: npt.ArrayLike | sparse.csr_array, grid: BaseGrid, least: float = 0.0
) -> pd.DataFrame:
    """`matrix_rows` with the places of both ends in degrees; largest first.

    >>> import agg_core
    >>> grid = agg_core.Grid.from_bbox(139.5, 35.5, 140.0, 35.9, rows=1, cols=2)
    >>> agg_core.flow_table([[75, 25], [0, 4]], grid, least=5)["count"].tolist()
    [75.0, 25.0]

    The outside state, if there is one, is cell ``grid.n_cells`` and has no place (nan).
    """
    return with_places(matrix_rows(counts, least), grid)


def with_places(flows: pd.DataFrame, grid: BaseGrid) -> pd.DataFrame:
    """Origin, dest, count and more, with the places of both ends in degrees; largest first."""
    require_columns(flows)
    table = flows.assign(count=flows["count"].astype(np.float64), **places_of_ends(flows, grid))
    others = [name for name in table.columns if name not in COLUMNS]
    ordered = table[[*COLUMNS, *others]]
    return ordered.sort_values("count", ascending=False, kind="stable", ignore_index=True)


def places_of_ends(flows: pd.DataFrame, grid: BaseGrid) -> dict[str, FloatArray]:
    """Longitude and latitude of origin and dest, (n,) each by column; nan for the outside."""
    places = np.vstack([grid.centroids, [[np.nan, np.nan]]])
    return {
        f"{end}_{axis}": places[flows[end].to_numpy(), i]
        for end in ("origin", "dest")
        for i, axis in enumerate(("lon", "lat"))
    }


def require_columns(flows: pd.DataFrame) -> None:
    """Raise InputError unless the table has origin, dest and count."""
    missing = [name for name in ("origin", "dest", "count") if name not in flows.columns]
    if missing:
        raise InputError(
            f"The flow table lacks the columns: {', '.join(missing)}.", code="columns-missing"
        )


def cell_totals(flows: pd.DataFrame, n_cells: int) -> pd.DataFrame:
    """What a flow table says of each cell, in people per step; row i is cell i.

    ``people`` are in the cell as the step begins: those who stay and those who go. ``change`` is
    incoming minus outgoing. Flows from and to the outside count for the cell at their other end.
    """
    require_columns(flows)
    origin = flows["origin"].to_numpy(dtype=np.int64)
    dest = flows["dest"].to_numpy(dtype=np.int64)
    count = flows["count"].to_numpy(dtype=np.float64)
    moves = origin != dest

    def total(of: npt.NDArray[np.int64], which: npt.NDArray[np.bool_]) -> FloatArray:
        people = np.bincount(of[which], count[which], n_cells + 1)[:n_cells]
        return np.asarray(people, dtype=np.float64)

    incoming, outgoing, stays = total(dest, moves), total(origin, moves), total(origin, ~moves)
    return pd.DataFrame(
        {
            "people": outgoing + stays,
            "incoming": incoming,
            "outgoing": outgoing,
            "stays": stays,
            "change": incoming - outgoing,
        }
    )


def counts_of(flows: pd.DataFrame, origin: npt.ArrayLike, dest: npt.ArrayLike) -> FloatArray:
    """Counts (n,) of the given pairs in a table, 0 for a pair that it lacks."""
    asked = pd.MultiIndex.from_arrays([np.asarray(origin), np.asarray(dest)])
    known = flows.set_index(["origin", "dest"])["count"]
    return known.reindex(asked, fill_value=0.0).to_numpy(dtype=np.float64)


def flow_differences(estimate: pd.DataFrame, truth: pd.DataFrame) -> pd.DataFrame:
    """Two flow tables side by side, a flow that one of them lacks being 0 there.

    Returns columns origin, dest, estimate, truth, difference (estimate - truth) and count, the
    size of the difference, so that the rows of greatest count differ most.
    """
    sides = []
    for name, flows in (("estimate", estimate), ("truth", truth)):
        require_columns(flows)
        sides.append(flows[["origin", "dest", "count"]].rename(columns={"count": name}))
    both = sides[0].merge(sides[1], on=["origin", "dest"], how="outer")
    both = both.fillna({"estimate": 0.0, "truth": 0.0})
    both["difference"] = both["estimate"] - both["truth"]
    both["count"] = both["difference"].abs()
    return both


@dataclass(frozen=True)
class FlowComparison:
    """How an estimate of moves (origin not dest) meets the truth.

    Attributes
    ----------
    cpc : common part of commuters, sum 2 min(e, t) / (sum e + sum t); 1 is perfect
    correlation : Pearson, over all ordered pairs of different cells that occur in either table
    precision : share of the estimate's arrows (count above the threshold) that are true arrows
    recall : share of the true arrows that the estimate has
    total_ratio : all estimated moves over all true moves; above 1 movement is invented

    A figure that has no meaning (no arrows, no moves) is nan.
    """

    cpc: float
    correlation: float
    precision: float
    recall: float
    total_ratio: float

    def to_dict(self) -> dict[str, float | None]:
        """For JSON: nan becomes None."""
        return {k: None if np.isnan(v) else v for k, v in asdict(self).items()}


def compare_flows(estimate: Tables, truth: Tables, threshold: float = 35.0) -> FlowComparison:
    """Compare flows (d, d), or those of several times (n, d, d), time by time; stays are left out.

    >>> import agg_core
    >>> agg_core.compare_flows([[0, 20], [20, 0]], [[0, 30], [10, 0]], threshold=15).cpc
    0.75

    Cells that occur in neither, as origin or destination at any time, are no cells. Tables may be
    sparse, several ones in a list, each with a pattern of its own: what is not in it is 0.
    """
    sides = [_layers(side) for side in (estimate, truth)]
    shapes = [shape for _, shape in sides]
    if shapes[0] != shapes[1] or shapes[0][-1] != shapes[0][-2]:
        raise InputError(
            f"Flows of shapes {shapes[0]} and {shapes[1]} cannot be compared; give two "
            "of the same cells and times.",
            code="wrong-shape",
        )
    e, t, n_pairs = _moves_of_both(*(layers for layers, _ in sides))
    # Sums in one order, flows of the estimate first, so that figures of before come out to the bit.
    order = np.argsort(e == 0, kind="stable")
    e, t = e[order], t[order]
    shown, true = e > threshold, t > threshold
    hits = float((shown & true).sum())
    return FlowComparison(
        cpc=common_part(e, t),
        correlation=_correlation(e, t, n_pairs),
        precision=ratio(hits, float(shown.sum())),
        recall=ratio(hits, float(true.sum())),
        total_ratio=ratio(e.sum(), t.sum()),
    )


def _layers(side: Any) -> tuple[FloatArray | list[AnyMoves], tuple[int, ...]]:
    """Tables one after the other, a whole array (n, d, d) of whole ones, and the shape given."""
    if sparse.issparse(side):
        table = as_moves(side)
        return [table], table.shape
    if isinstance(side, list | tuple) and any(sparse.issparse(table) for table in side):
        tables = [as_moves(table) for table in side]
        shapes = {table.shape for table in tables}
        # Tables of several sizes have no common one, as an array of them would not.
        return tables, (len(tables), *max(shapes)) if len(shapes) == 1 else (0, 1)
    whole = np.asarray(side, dtype=np.float64)
    return whole.reshape(-1, *whole.shape[-2:]), whole.shape


def _moves_of_both(
    estimate: FloatArray | list[AnyMoves], truth: FloatArray | list[AnyMoves]
) -> tuple[FloatArray, FloatArray, int]:
    """Moves (n,) that either has, in both, and how many pairs of different cells there are."""
    if isinstance(estimate, np.ndarray) and isinstance(truth, np.ndarray):
        d = estimate.shape[-1]
        some = (estimate != 0) | (truth != 0)
        n_cells = int((some.any(axis=(0, 1)) | some.any(axis=(0, 2))).sum())
        moves = some & ~np.eye(d, dtype=bool)
        return estimate[moves], truth[moves], n_cells * (n_cells - 1) * len(some)
    d, listed = estimate[0].shape[-1], [_listed(tables) for tables in (estimate, truth)]
    keys = np.union1d(listed[0][0], listed[1][0])
    origin, dest = keys // d % d, keys % d
    n_cells = len(np.union1d(origin, dest))
    moves = origin != dest
    sides = np.zeros((2, len(keys)))
    for side, (mine, people) in zip(sides, listed, strict=True):
        side[np.searchsorted(keys, mine)] = people
    return sides[0, moves], sides[1, moves], n_cells * (n_cells - 1) * len(estimate)


def _listed(tables: FloatArray | list[AnyMoves]) -> tuple[IntArray, FloatArray]:
    """Flows (n,) of somebody, each known by its number in an array (n, d, d) of all tables."""
    keys, people = [], []
    for number, table in enumerate(tables):
        values, d = entries(table), table.shape[-1]
        some = values != 0
        origin, dest = ends_of(table, some)
        keys.append((number * d + origin) * d + dest)
        people.append(values[some])
    return np.concatenate(keys), np.concatenate(people)


def common_part(estimate: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Common part of commuters of the same moves (n,) as estimated and in truth; nan without any.

    Sum of 2 min(e, t) over the sum of e + t (Lenormand et al. 2012).
    """
    e, t = np.asarray(estimate, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    return ratio(2 * np.minimum(e, t).sum(), e.sum() + t.sum())


def ratio(part: float, whole: float) -> float:
    """A part over the whole; nan where there is no whole."""
    return float(part / whole) if whole > 0 else float("nan")


def _correlation(e: FloatArray, t: FloatArray, n: int) -> float:
    """Pearson correlation over n pairs, of which only those not both zero are listed."""
    if n < 2:
        return float("nan")
    centred = [side - side.sum() / n for side in (e, t)]
    means = [side.sum() / n for side in (e, t)]
    unlisted = n - len(e)
    covariance = centred[0] @ centred[1] + unlisted * means[0] * means[1]
    variances = [c @ c + unlisted * mean**2 for c, mean in zip(centred, means, strict=True)]
    # Rounding leaves a trace of variance where all values are equal.
    floor = [1e-24 * n * mean**2 for mean in means]
    if any(v <= least for v, least in zip(variances, floor, strict=True)):
        return float("nan")
    return float(covariance / np.sqrt(variances[0] * variances[1]))
