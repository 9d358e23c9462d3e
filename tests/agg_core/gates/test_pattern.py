import numpy as np
import pytest

from agg_core.gates.days import ServiceDays, kinds_of_days
from agg_core.gates.pattern import _Straying, features_of, learn_pattern, unlearned
from tests.agg_core.gates.made import LINES, STATIONS, trips

N = len(STATIONS)


def days_of(
    n_days: int = 28, seed: int = 0, line: float = -1.2, people: float = 400
) -> ServiceDays:
    entries, exits, _ = trips(n_days, people=people, seed=seed, line=line)
    first = np.datetime64("2024-05-06")
    return ServiceDays(
        dates=tuple(str(first + day) for day in range(n_days)),
        entries=entries, exits=exits, slot=np.arange(24),
        slots=tuple(f"{h:02d}:00" for h in range(24)),
        is_open=np.ones((n_days, N), dtype=bool), step_minutes=60.0, n_filled=0, left_out=(),
        never_left=np.zeros(n_days),
    )  # fmt: skip


@pytest.fixture(scope="module")
def straying() -> _Straying:
    days = days_of(14)
    kind = np.zeros(14, dtype=np.int64)
    return _Straying(days, kind, features_of(np.full((N, N), 6.0), LINES, N), 2.0)


def test_gradient_by_differences(straying: _Straying) -> None:
    rng = np.random.default_rng(0)
    at = 0.3 * rng.standard_normal((N, N))
    _, gradient = straying.loss(at)
    for origin, dest in ((0, 1), (3, 5), (7, 2)):
        step = np.zeros((N, N))
        step[origin, dest] = 1e-3
        # Levels of a pattern are met whatever it is, so that the maximum may move freely.
        slope = (straying.loss(at + step)[0] - straying.loss(at - step)[0]) / 2e-3
        assert gradient[origin, dest] == pytest.approx(slope, rel=0.05, abs=0.05)


def test_scaling_rows_and_columns_changes_nothing(straying: _Straying) -> None:
    rng = np.random.default_rng(1)
    rows, cols = rng.standard_normal((N, 1)), rng.standard_normal((1, N))
    at = 0.3 * rng.standard_normal((N, N))
    assert straying.loss(at + rows + cols)[0] == pytest.approx(straying.loss(at)[0], rel=1e-3)


@pytest.mark.parametrize("line", [-1.2, 0.0])
def test_finds_that_people_keep_to_their_line(line: float) -> None:
    days = days_of(seed=2, line=line)
    found = learn_pattern(
        days, np.zeros(28, dtype=np.int64), features_of(None, LINES, N), spread=0.5
    )
    assert found.learned
    sd = float(np.sqrt(found.weights_cov[0, 0]))
    assert sd < 0.35
    assert abs(found.weights[0] - line) < 3 * sd


def test_pairs_beyond_the_features_are_told_by_the_evidence() -> None:
    days = days_of(56, seed=3, people=4000)
    found = learn_pattern(
        days, np.zeros(56, dtype=np.int64), features_of(None, ("one",) * N, N), spread=1.0
    )
    apart = np.array(LINES)[:, None] != np.array(LINES)[None]
    pairs = ~np.eye(N, dtype=bool)
    assert found.effects[pairs & ~apart].mean() > found.effects[apart].mean() + 0.3
    assert (found.effects_sd[pairs] < 1.0).all()
    assert np.array_equal(found.effects, found.effects.T)


def test_too_few_days_alike_learn_nothing() -> None:
    days = days_of(2)
    found = learn_pattern(days, kinds_of_days(days.dates), features_of(None, LINES, N), spread=0.4)
    assert not found.learned
    assert found.effects_sd[0, 1] == 0.4
    assert found.effects_sd[0, 0] == 0.0


def test_draws_stray_as_far_as_is_said() -> None:
    pattern = unlearned(features_of(None, (), N), 0.5)
    rng = np.random.default_rng(0)
    draws = np.stack([pattern.draw(rng, 6) for _ in range(400)])
    of_day = draws.mean(axis=1)
    assert of_day[:, 0, 1].std() == pytest.approx(0.5, rel=0.15)
    assert np.allclose(draws[..., 0, 0], draws[0, 0, 0, 0])


def test_several_lines_of_a_station_are_each_its_own() -> None:
    found = features_of(None, ("red;blue", "red", "blue", "green"), 4)
    assert found.names == ("line",)
    assert found.values[0].tolist() == [[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 0]]
