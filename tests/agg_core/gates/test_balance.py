import numpy as np
import numpy.typing as npt
import pytest

from agg_core.gates.balance import balanced

FloatArray = npt.NDArray[np.float64]


def by_hand(
    chances: FloatArray, entries: FloatArray, exits: FloatArray, sweeps: int = 4000
) -> FloatArray:
    """Trips (H, L, S, S) fitted one sum after the other, without any short cut."""
    n_lags, n_steps = len(chances), len(entries)
    flows = np.repeat(chances[None], n_steps, axis=0)
    for _ in range(sweeps):
        sums = flows.sum(axis=(1, 3))
        flows = flows * np.divide(entries, sums, out=np.zeros_like(sums), where=sums > 0)[
            :, None, :, None
        ]  # fmt: skip
        came = np.zeros_like(exits)
        for h in range(n_steps):
            for lag in range(n_lags):
                came[min(h + lag, n_steps - 1)] += flows[h, lag].sum(axis=0)
        factor = np.divide(exits, came, out=np.zeros_like(came), where=came > 0)
        for h in range(n_steps):
            for lag in range(n_lags):
                flows[h, lag] *= factor[min(h + lag, n_steps - 1)]
    return flows


@pytest.fixture
def case() -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    chances = rng.uniform(0.1, 1.0, (3, 4, 4))
    true = rng.uniform(1, 50, (6, 3, 4, 4))
    entries, exits = true.sum(axis=(1, 3)), np.zeros((6, 4))
    for h in range(6):
        for lag in range(3):
            exits[min(h + lag, 5)] += true[h, lag].sum(axis=0)
    return chances, entries, exits


def test_same_as_fitting_every_sum_in_turn(
    case: tuple[FloatArray, FloatArray, FloatArray],
) -> None:
    chances, entries, exits = case
    trips = balanced(chances, entries, exits, people=0.0, sweeps=2000, tolerance=1e-13)
    assert trips.by_entry() == pytest.approx(by_hand(*case).sum(axis=1), rel=1e-5)


def test_meets_both_sums(case: tuple[FloatArray, FloatArray, FloatArray]) -> None:
    chances, entries, exits = case
    trips = balanced(chances, entries, exits, people=0.0, tolerance=1e-12, sweeps=2000)
    assert trips.by_entry().sum(axis=2) == pytest.approx(entries, rel=1e-6)
    assert trips.by_exit().sum(axis=1) == pytest.approx(exits, rel=1e-6)
    assert trips.entries() == pytest.approx(entries, rel=1e-6)
    assert trips.exits() == pytest.approx(exits, rel=1e-6)
    assert trips.by_exit().sum(axis=0) == pytest.approx(trips.by_entry().sum(axis=0))


def test_one_lag_is_proportional_fitting() -> None:
    # Two stations, one step: x of 10 go across where 10 x (x + 5) / ... by the odds ratio 1.
    chances = np.ones((1, 2, 2))
    trips = balanced(chances, np.array([[10.0, 20.0]]), np.array([[15.0, 15.0]]), people=0.0)
    assert trips.by_entry()[0] == pytest.approx(np.array([[5.0, 5.0], [10.0, 10.0]]), rel=1e-4)


def test_periods_have_patterns_of_their_own(
    case: tuple[FloatArray, FloatArray, FloatArray],
) -> None:
    chances, entries, exits = case
    other = np.random.default_rng(1).uniform(0.1, 1.0, chances.shape)
    period = np.array([0, 0, 0, 1, 1, 1])
    both = np.stack([chances, other])
    trips = balanced(both, entries, exits, period=period, people=0.0, tolerance=1e-12, sweeps=2000)
    of_each = np.stack([both[p] for p in period])
    expected = trips.enter[:, None, :, None] * of_each
    later = np.minimum(np.arange(6)[:, None] + np.arange(3), 5)
    expected = expected * trips.leave[later][:, :, None, :]
    assert trips.by_entry() == pytest.approx(expected.sum(axis=1))
    assert trips.exits() == pytest.approx(exits, rel=1e-6)
    alike = balanced(np.stack([chances] * 2), entries, exits, period=period)
    alone = balanced(chances, entries, exits)
    assert alike.by_entry() == pytest.approx(alone.by_entry(), rel=1e-9)


def test_exits_that_nobody_can_make_send_nothing_to_infinity() -> None:
    entries, exits = np.zeros((4, 3)), np.zeros((4, 3))
    entries[0], exits[1], exits[3, 0] = [30, 20, 10], [20, 20, 20], 7.0
    chances = np.stack([np.ones((3, 3)) * 0.5] * 2)
    trips = balanced(chances, entries, exits)
    assert np.isfinite(trips.by_entry()).all()
    assert trips.by_entry().sum() == pytest.approx(60, rel=0.05)


def test_a_start_nearby_ends_at_the_same_trips(
    case: tuple[FloatArray, FloatArray, FloatArray],
) -> None:
    chances, entries, exits = case
    exactly = {"people": 0.0, "tolerance": 1e-12, "sweeps": 2000}
    whole = balanced(chances, entries, exits, **exactly)
    again = balanced(chances * 1.3, entries, exits, start=whole.leave, **exactly)
    assert again.by_entry() == pytest.approx(whole.by_entry(), rel=1e-4)
