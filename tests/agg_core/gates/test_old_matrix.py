import numpy as np
import pytest

from agg_core.gates.old_matrix import OldMatrix, dirichlet_weight, seeds_of
from tests.faults import refused

N = 6
NOT_TOLD = np.array([-1])


def rows(weight: float, seed: int = 0, n_rows: int = 4000, people: int = 400):
    """Rows of people that are drawn around chances, which count for so many."""
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.full(N, 2.0), n_rows)
    drawn = np.stack([rng.dirichlet(weight * row) for row in chances])
    return rng.multinomial(people, drawn).astype(float), chances


@pytest.mark.parametrize("weight", [20.0, 300.0])
def test_finds_the_weight_that_rows_were_drawn_by(weight: float) -> None:
    assert dirichlet_weight(*rows(weight)) == pytest.approx(weight, rel=0.1)


def test_the_likelihood_by_hand() -> None:
    # Of two people in one row, chances a half each: both the same with (w / 2 + 1) / (w + 1).
    chances = np.full((1, 2), 0.5)
    alike = dirichlet_weight(np.array([[2.0, 0.0]]), chances)
    apart = dirichlet_weight(np.array([[1.0, 1.0]]), chances)
    assert alike == pytest.approx(1.0, rel=0.05)
    assert apart > 1e5


def test_levels_are_as_near_as_their_people_say() -> None:
    rng = np.random.default_rng(1)
    told = rng.uniform(1, 5, (N, N))
    trips = rng.poisson(50, (1, N, N)).astype(float)
    trips[0, 3] = 0
    found = seeds_of(OldMatrix(trips, NOT_TOLD, NOT_TOLD, NOT_TOLD), told, 2, 3)
    weight = found.weights["gates"]
    gates = told / told.sum(axis=1, keepdims=True)
    expected = (trips[0, 0] + weight * gates[0]) / (trips[0, 0].sum() + weight)
    assert found.chances.shape == (2, 3, N, N)
    assert found.chances[1, 2, 0] == pytest.approx(expected)
    # Of a station without trips the gates alone tell.
    assert found.chances[0, 0, 3] == pytest.approx(gates[3])
    assert not found.known[3].any()
    assert found.known[0, 1]
    assert set(found.weights) == {"gates", "other"}


def test_periods_and_kinds_of_days_differ_as_the_matrix_does() -> None:
    rng = np.random.default_rng(2)
    shapes = rng.dirichlet(np.full(N, 0.5), (2, 2, N))
    groups, trips = [], []
    for day in range(6):
        for period in range(2):
            kind = int(day == 5)
            groups.append((day, kind, period))
            trips.append(rng.poisson(2000 * shapes[kind, period]))
    day, kind, period = np.array(groups).T
    found = seeds_of(
        OldMatrix(np.array(trips, dtype=float), day, kind, period), np.ones((N, N)), 3, 2
    )
    assert found.chances[:2] == pytest.approx(shapes, abs=0.04)
    # A kind of days that the matrix lacks is as all of them.
    assert np.abs(found.chances[2] - shapes[0]).mean() < np.abs(shapes[0] - shapes[1]).mean()
    assert found.chances.sum(axis=-1) == pytest.approx(1.0)


def test_draws_lie_around_the_chances() -> None:
    rng = np.random.default_rng(3)
    trips = rng.poisson(50, (1, N, N)).astype(float)
    found = seeds_of(OldMatrix(trips, NOT_TOLD, NOT_TOLD, NOT_TOLD), np.ones((N, N)), 1, 1)
    draws = np.stack([found.draw(rng) for _ in range(3000)])
    assert draws.mean(axis=0) == pytest.approx(found.chances, abs=0.01)
    assert draws.std(axis=0).min() > 0


def test_a_matrix_of_nobody_is_refused() -> None:
    nobody = OldMatrix(np.zeros((1, N, N)), NOT_TOLD, NOT_TOLD, NOT_TOLD)
    with refused("matrix-without-trips"):
        seeds_of(nobody, np.ones((N, N)), 1, 1)
