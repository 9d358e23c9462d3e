"""Gaussian emissions: continuous observations, and positions with noise in metres on a grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse

from agg_core.base.errors import InputError
from agg_core.model.aggregates import Aggregates
from agg_core.model.emissions import EARTH_M, TAIL, Emission, TokenLikelihoods
from agg_core.space.grid import BaseGrid

__all__ = [
    "COVARIANCE_TYPES",
    "Blurring",
    "CovarianceType",
    "GaussianEmission",
    "covariance_floor",
    "grid_gaussian_emission",
    "grid_positions",
    "kmeans_centres",
    "shaped_covariance",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

CovarianceType = Literal["full", "diag", "spherical", "fixed"]
COVARIANCE_TYPES: tuple[CovarianceType, ...] = get_args(CovarianceType)
"""How covariances are learned; "fixed" keeps them and learns the means alone."""

FLOOR = 1e-3
"""A state's covariance is at least this part of the covariance of all observations."""

LEAST = 1e-100
"""Densities this far below a token's best state are raised to it: products stay in a double."""

FIRST_SIDES = 0.1
LEAST_SIDES, MOST_SIDES = 0.01, 3.0
"""Where learned metres begin, and within what they stay, in sides of a cell."""

EDGE_SIDES, PART_APART = 0.2, 0.1
"""Exact positions look like noise of up to 0.17 sides of a cell, the more the more people move, as
the normal distribution that stands for a cell has no edges: squared metres that differ by less than
those of `EDGE_SIDES` do not contradict. So near, in parts, were planted metres found again."""

ROWS_AT_ONCE = 4_000_000
"""Entries of the table of densities that are worked on together, before the small ones go."""


@dataclass(frozen=True)
class GaussianEmission:
    """Places drawn from one normal distribution per state (section 4 of the paper).

    Attributes
    ----------
    means : (d, s)
    covars : (d, s, s), symmetric and positive definite
    covariance_type : the shape that the M-step gives the covariances; "fixed" leaves them
    floor : (s, s), optional; learned covariances are at least this (see `covariance_floor`)
    tail : states whose density is below this part of the token's largest are left out of its
        support; 0 keeps all
    origin : (s,), optional; what the moments of the M-step are taken about (the mean of ``means``
        if left out): near the data, so that no digits are lost
    """

    means: FloatArray
    covars: FloatArray
    covariance_type: CovarianceType = "full"
    floor: FloatArray | None = None
    tail: float = 0.0
    origin: FloatArray | None = None

    @classmethod
    def checked(
        cls,
        means: npt.ArrayLike,
        covars: npt.ArrayLike,
        covariance_type: str = "full",
        floor: FloatArray | None = None,
    ) -> GaussianEmission:
        """From values that a person gave.

        ``covars`` may be (d, s, s), or (d, s) variances, or (d,) variances equal in all directions.

        Raises
        ------
        InputError
            If the type is unknown, shapes do not fit, or a covariance is not positive definite.
        """
        centres = np.array(means, dtype=np.float64)
        if centres.ndim != 2 or centres.size == 0 or not np.isfinite(centres).all():
            raise InputError(
                "means must be finite numbers, states x coordinates; "
                f"the shape was {centres.shape}.",
                code="malformed-means",
            )
        if covariance_type not in COVARIANCE_TYPES:
            raise InputError(
                f"covariance_type must be one of {', '.join(COVARIANCE_TYPES)}; "
                f"it was {covariance_type!r}.",
                code="not-a-choice",
            )
        spread = _as_matrices(np.array(covars, dtype=np.float64), *centres.shape)
        if not np.allclose(spread, spread.transpose(0, 2, 1)) or not _positive_definite(spread):
            raise InputError(
                "covars must be symmetric positive definite matrices, one a state.",
                code="covariance-not-positive",
            )
        return cls(centres, spread, covariance_type, floor)

    @property
    def n_states(self) -> int:
        """Number of hidden states d."""
        return int(self.means.shape[0])

    def likelihoods(self, aggregates: Aggregates) -> TokenLikelihoods:
        """Density of every place under every state, divided by the largest of its row.

        The logarithm of what was divided by is kept, so that likelihoods come out whole.

        Raises
        ------
        InputError
            If the observations are not places of the same number of coordinates.
        """
        points = _points_of(aggregates)
        if points.shape[1] != self.means.shape[1]:
            raise InputError(
                f"The emission has {self.means.shape[1]} coordinates but the observations have "
                f"{points.shape[1]}; give both the same.",
                code="coordinates-differ",
            )
        per_row, states, values, best = [], [], [], []
        for log_density in self._log_densities(points):
            top = log_density.max(axis=1, keepdims=True)
            relative = np.exp(np.maximum(log_density - top, np.log(LEAST)))
            kept = relative >= self.tail
            per_row.append(kept.sum(axis=1))
            states.append(np.nonzero(kept)[1])
            values.append(relative[kept])
            best.append(top[:, 0])
        return TokenLikelihoods(
            indptr=np.concatenate([[0], np.cumsum(np.concatenate(per_row))]).astype(np.int64),
            states=np.concatenate(states).astype(np.int64),
            values=np.concatenate(values),
            row=aggregates.symbol,
            n_states=self.n_states,
            log_scale=np.concatenate(best),
        )

    def _log_densities(self, points: FloatArray) -> Iterator[FloatArray]:
        """Log densities (rows, d), some rows at a time."""
        lower = np.linalg.cholesky(self.covars)
        whiten = np.linalg.inv(lower)
        log_norm = -np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        log_norm -= self.means.shape[1] / 2 * np.log(2 * np.pi)
        rows = max(ROWS_AT_ONCE // (self.n_states * self.means.shape[1]), 1)
        for first in range(0, len(points), rows):
            some = points[first : first + rows]
            out = np.empty((len(some), self.n_states))
            for x in range(self.n_states):
                away = (some - self.means[x]) @ whiten[x].T
                out[:, x] = log_norm[x] - 0.5 * (away**2).sum(axis=1)
            yield out

    def statistics(
        self, aggregates: Aggregates, likelihoods: TokenLikelihoods, counts: FloatArray
    ) -> FloatArray:
        """Expected people, their sum of places and of squared places per state, (d, 1 + s + s s).

        Places are taken from ``origin``. ``counts`` is aligned with the entries of the table in
        ``likelihoods``.
        """
        away = _points_of(aggregates) - self.moments_about
        moments = np.column_stack(
            [np.ones(len(away)), away, (away[:, :, None] * away[:, None]).reshape(len(away), -1)]
        )
        weight = sparse.csr_array(
            (counts, likelihoods.states, likelihoods.indptr), shape=(len(away), self.n_states)
        )
        return np.asarray(weight.T @ moments)

    def at_least(self, statistics: FloatArray, least: FloatArray) -> FloatArray:
        """The moments (d, 1 + s + s s); of states with fewer people than in ``least``, those."""
        return np.where(statistics[:, :1] >= least[:, :1], statistics, least)

    def from_statistics(self, statistics: FloatArray) -> GaussianEmission:
        """Weighted means and covariances per state (equations 15c and 15d of the paper).

        States that nobody is expected in keep their values. The floor is met exactly as the
        constrained maximum asks, so the free energy still falls.
        """
        n_features, people = self.means.shape[1], statistics[:, 0]
        means, covars = self.means.copy(), self.covars.copy()
        for x in np.flatnonzero(people > np.finfo(float).tiny):
            mean = statistics[x, 1 : 1 + n_features] / people[x]
            means[x] = self.moments_about + mean
            if self.covariance_type != "fixed":
                square = statistics[x, 1 + n_features :].reshape(n_features, n_features) / people[x]
                covars[x] = shaped_covariance(
                    square - np.outer(mean, mean), self.covariance_type, self.floor
                )
        return replace(self, means=means, covars=covars, origin=self.moments_about)

    @property
    def moments_about(self) -> FloatArray:
        """What the moments of `statistics` are taken about, (s,)."""
        return np.asarray(self.means.mean(axis=0)) if self.origin is None else self.origin

    @property
    def values(self) -> FloatArray:
        """The ``means``."""
        return self.means

    def with_values(self, values: FloatArray) -> GaussianEmission:
        """The same covariances about other means."""
        return replace(self, means=values)

    def distance(self, other: Emission) -> float:
        """Mean over states of the change in standard deviations: of the mean and of the spread."""
        if not isinstance(other, GaussianEmission):
            raise TypeError("a Gaussian emission can only be compared with a Gaussian one")
        whiten = np.linalg.inv(np.linalg.cholesky(self.covars))
        moved = np.einsum("xij,xj->xi", whiten, other.means - self.means)
        spread = whiten @ other.covars @ whiten.transpose(0, 2, 1) - np.eye(self.means.shape[1])
        change = np.linalg.norm(moved, axis=1) + np.linalg.norm(spread, axis=(1, 2))
        return float(change.mean())

    def mismatch(self, other: Emission) -> FloatArray:
        """Squared Hellinger distance of each state from each state of the other, (d, d), 0 to 1."""
        if not isinstance(other, GaussianEmission):
            raise TypeError("a Gaussian emission can only be compared with a Gaussian one")
        pooled = (self.covars[:, None] + other.covars[None, :]) / 2
        apart = self.means[:, None] - other.means[None, :]
        reach = np.einsum("xyi,xyi->xy", apart, np.linalg.solve(pooled, apart[..., None])[..., 0])
        log_det = np.linalg.slogdet(self.covars)[1][:, None] + np.linalg.slogdet(other.covars)[1]
        log_overlap = log_det / 4 - np.linalg.slogdet(pooled)[1] / 2 - reach / 8
        return np.asarray(-np.expm1(log_overlap))

    def permuted(self, order: IntArray) -> GaussianEmission:
        """The same emission with its states in another order."""
        return replace(self, means=self.means[order], covars=self.covars[order])

    def sample(self, states: IntArray, rng: np.random.Generator) -> FloatArray:
        """A place for every state: the shape of ``states`` and s."""
        lower = np.linalg.cholesky(self.covars)
        noise = rng.standard_normal((*states.shape, self.means.shape[1]))
        return np.asarray(self.means[states] + np.einsum("...ij,...j->...i", lower[states], noise))


@dataclass(frozen=True)
class Blurring:
    """Emissions that add Gaussian noise of some metres, alike in all directions, to places.

    ``plain`` is without that noise. The first ``n_cells`` states tell of it, the others, of which
    people are seen without error, do not. ``side_m`` is about that of a cell.
    """

    plain: GaussianEmission
    n_cells: int
    side_m: float

    @classmethod
    def on_grid(cls, grid: BaseGrid, *, outside: bool = False) -> Blurring:
        """Of people anywhere in their cells; ``emission(m)`` is `grid_gaussian_emission` of m."""
        means, covars = grid.moments_m
        # The outside is so far away that moments about a mean with it would lose their digits.
        origin = means.mean(axis=0)
        side_m = float(np.sqrt(6 * np.median(np.trace(covars, axis1=1, axis2=2))))
        if outside:
            means = np.vstack([means, _far_away(grid)])
            covars = np.concatenate([covars, covars.mean(axis=0, keepdims=True)])
        plain = GaussianEmission(means, covars, "fixed", tail=TAIL, origin=origin)
        return cls(plain, grid.n_cells, side_m)

    @property
    def limits(self) -> tuple[float, float]:
        """Metres within which learned ones stay."""
        return LEAST_SIDES * self.side_m, MOST_SIDES * self.side_m

    @property
    def first(self) -> float:
        """Metres to begin with."""
        return FIRST_SIDES * self.side_m

    def near(self, learned: float, stated: float) -> bool:
        """Whether stated metres may be the learned ones."""
        by_edges = abs(learned**2 - stated**2) <= (EDGE_SIDES * self.side_m) ** 2
        return by_edges or abs(learned - stated) <= PART_APART * learned

    def emission(self, amount: float) -> GaussianEmission:
        """The emission with noise of this many metres."""
        noise = amount**2 * np.eye(self.plain.means.shape[1])
        return replace(self.plain, covars=self.plain.covars + noise)

    def improved(self, statistics: FloatArray, amount: float) -> float | None:
        """The metres by the M-step; None if nobody is expected where they tell of them.

        With n people of a state, S their sum of squared distances (s, s) from its mean, C its
        covariance without noise and W = (C + amount^2 I)^-1 it is a step of Fisher scoring::

            metres^2 = sum tr(W (S - n C) W) / sum n tr(W W)

        over the cells: where all are alike and square, the mean squared distance less that within
        a cell, over s, which is the maximum. Where they are not, small cells tell more than large
        ones. ``statistics`` are the moments (d, 1 + s + s s) of `GaussianEmission.statistics`.
        """
        told, s = slice(self.n_cells), self.plain.means.shape[1]
        people, sums = statistics[told, 0], statistics[told, 1 : 1 + s]
        centre, covars = self.plain.means[told] - self.plain.moments_about, self.plain.covars[told]
        across = sums[:, :, None] * centre[:, None]
        square = (
            statistics[told, 1 + s :].reshape(-1, s, s) - across - across.transpose(0, 2, 1)
            + people[:, None, None] * centre[:, :, None] * centre[:, None]
        )  # fmt: skip
        weight = np.linalg.inv(covars + amount**2 * np.eye(s))
        weight = weight @ weight
        total = float(people @ np.trace(weight, axis1=1, axis2=2))
        if total <= 0:
            return None
        more = square - people[:, None, None] * covars
        return float(np.sqrt(max((weight * more).sum() / total, 0.0)))


def shaped_covariance(
    covar: FloatArray, covariance_type: str, floor: FloatArray | None = None
) -> FloatArray:
    """The covariance (s, s) of the type asked for that fits best and is not below the floor."""
    n_features = len(covar)
    least = np.zeros_like(covar) if floor is None else floor
    if covariance_type == "spherical":
        return np.asarray(max(np.trace(covar), np.trace(least)) / n_features * np.eye(n_features))
    if covariance_type == "diag":
        return np.diag(np.maximum(np.diag(covar), np.diag(least)))
    if floor is None:
        return covar
    # In the coordinates where the floor is the identity, eigenvalues below 1 rise to 1.
    lower = np.linalg.cholesky(floor)
    whiten = np.linalg.inv(lower)
    values, vectors = np.linalg.eigh(whiten @ covar @ whiten.T)
    if values[0] >= 1.0:
        return covar
    half = lower @ vectors * np.sqrt(np.maximum(values, 1.0))
    return np.asarray(half @ half.T)


def covariance_floor(points: FloatArray) -> FloatArray:
    """The smallest covariance that a state may shrink to, (s, s): a thousandth of the pooled one.

    Coordinates that never change are given a variance of one so that nothing is singular.
    """
    pooled = np.atleast_2d(np.cov(points.T, bias=True)) if len(points) > 1 else np.zeros((1, 1))
    pooled = np.broadcast_to(pooled, (points.shape[1],) * 2).copy()
    variances = np.diag(pooled).copy()
    variances[variances <= 0] = 1.0
    np.fill_diagonal(pooled, variances)
    # Coordinates that are copies of each other: a hundredth less of what they share.
    return np.asarray(FLOOR * (0.99 * pooled + 0.01 * np.diag(variances)))


def kmeans_centres(points: FloatArray, n_states: int, rng: np.random.Generator) -> FloatArray:
    """Starting means (d, s): centres of the pooled points by k-means, begun by k-means++.

    Raises
    ------
    InputError
        If there are fewer points than states.
    """
    from sklearn.cluster import KMeans  # noqa: PLC0415

    if len(points) < n_states:
        raise InputError(
            f"{n_states} states need as many observations at least; there are {len(points)}: use "
            "fewer states, more people or longer sequences, or give the means.",
            code="too-few-observations",
        )
    seed = int(rng.integers(2**31))
    fitted = KMeans(n_states, n_init=1, random_state=seed).fit(points)
    return np.asarray(fitted.cluster_centers_)


def grid_gaussian_emission(
    grid: BaseGrid, sigma_m: float, *, outside: bool = False
) -> GaussianEmission:
    """Where people of each cell are seen, in metres, as one normal distribution per cell.

    A person is anywhere in their cell with equal chance (in a rectangle variance side^2 / 12 each
    way) and is seen with Gaussian noise of ``sigma_m`` metres; the normal distribution has that
    mean and covariance. With ``outside`` there is one more state, seen without error at
    a place of its own far from the grid (see `grid_positions`). Cells whose density is below 1e-6
    of the best are left out of a place's support.

    Raises
    ------
    InputError
        If ``sigma_m`` lies outside 0..10,000 km.
    """
    if not 0 <= sigma_m <= EARTH_M:
        raise InputError(
            f"Position noise must lie between 0 and 10,000 km; it was {sigma_m} m.",
            code="value-out-of-range",
        )
    return Blurring.on_grid(grid, outside=outside).emission(sigma_m)


def grid_positions(
    grid: BaseGrid,
    lonlat: npt.ArrayLike,
    sigma_m: float,
    random_state: int | np.random.Generator | None = None,
) -> FloatArray:
    """Noisy positions (..., 2) in metres of places (..., 2) in degrees.

    Gaussian noise of ``sigma_m`` metres is added in each direction. Whoever is outside the grid is
    put at the one place that stands for outside, without noise.
    """
    rng = np.random.default_rng(random_state)
    places = np.asarray(lonlat, dtype=np.float64)
    flat = places.reshape(-1, 2)
    inside = grid.assign(flat[:, 0], flat[:, 1]) >= 0
    seen = np.tile(_far_away(grid), (len(flat), 1))
    if inside.any():
        seen[inside] = grid.to_metres(flat[inside])
    seen[inside] += rng.normal(0.0, sigma_m, seen[inside].shape)
    return seen.reshape(places.shape)


def _far_away(grid: BaseGrid) -> FloatArray:
    """A place that no noise inside the grid can reach."""
    return np.asarray(grid.centroids_m.min(axis=0) - 1000 * EARTH_M)


def _points_of(aggregates: Aggregates) -> FloatArray:
    if aggregates.points is None:
        raise InputError(
            "A Gaussian emission needs continuous observations, places of people; these are counts "
            "of symbols: use a categorical emission.",
            code="places-needed",
        )
    return aggregates.points


def _as_matrices(covars: FloatArray, n_states: int, n_features: int) -> FloatArray:
    """Covariances (d, s, s) from matrices, variances (d, s) or a variance per state (d,)."""
    unit = np.eye(n_features)
    if covars.shape == (n_states, n_features, n_features):
        return covars
    if covars.shape == (n_states, n_features):
        return np.asarray(covars[:, :, None] * unit)
    if covars.shape == (n_states,):
        return np.asarray(covars[:, None, None] * unit)
    raise InputError(
        f"covars must have shape ({n_states}, {n_features}, {n_features}), ({n_states}, "
        f"{n_features}) or ({n_states},) to fit the means; it has {covars.shape}.",
        code="wrong-shape",
    )


def _positive_definite(covars: FloatArray) -> bool:
    try:
        np.linalg.cholesky(covars)
    except np.linalg.LinAlgError:
        return False
    return bool(np.isfinite(covars).all())
