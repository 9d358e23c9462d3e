import numpy as np
import pytest

from agg_core.learn.averaging import TELLING, RecentMean, Settling
from agg_core.learn.mstep import Statistics
from agg_core.model.hmm import HMM

PEOPLE = np.array([1.0, 1.0])


def number(value):
    return Statistics(np.array([float(value)]), np.array([[10.0 * value]]), np.array([[-value]]))


def test_windows_by_hand():
    """Blocks of a third of all values so far end after 1, 2, 3, 5, 8, 12 and 18 of them."""
    first_of_mean = {
        1: 1, 2: 2, 3: 3, 4: 3, 5: 4, 6: 4, 7: 4, 8: 6, 9: 6, 10: 6, 11: 6, 12: 9, 13: 9,
        17: 9, 18: 13, 19: 13, 26: 13, 27: 19,
    }  # fmt: skip
    blocks = {1: (1, 1), 3: (3, 3), 5: (4, 5), 8: (6, 8), 12: (9, 12), 18: (13, 18), 27: (19, 27)}
    recent = RecentMean()
    for n in range(1, 28):
        told = recent.add(number(n))
        if n in first_of_mean:
            mean = (first_of_mean[n] + n) / 2
            assert recent.mean.start[0] == pytest.approx(mean)
            assert recent.mean.transitions[0, 0] == pytest.approx(10 * mean)
            assert recent.mean.emission[0, 0] == pytest.approx(-mean)
        if n in blocks:
            assert recent.last_block.start[0] == pytest.approx(sum(blocks[n]) / 2)
        assert told == (n in (18, 27))
    assert TELLING == 5


def test_the_mean_is_of_the_last_third_to_two_thirds():
    recent = RecentMean()
    for n in range(1, 400):
        recent.add(number(n))
        kept = 2 * (n - recent.mean.start[0]) + 1
        if n > 20:
            assert n / 3 - 1e-9 <= kept <= 2 * n / 3


def test_noise_falls_with_the_number_of_values():
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(200):
        recent = RecentMean()
        for value in rng.normal(size=160):
            recent.add(number(value))
        errors.append(recent.mean.start[0])
    assert 1 / np.sqrt(110) < np.std(errors) < 1 / np.sqrt(50)


def model(move, stay=0.5):
    return HMM.categorical([0.5, 0.5], [[stay + move, 1 - stay - move], [0.5, 0.5]], np.eye(2))


def course(moves):
    """Change after each of the blocks with these moves."""
    settling, found = Settling(), []
    emission = model(0).emission
    for move in moves:
        hmm = model(move)
        settling.report(HMM(hmm.startprob, hmm.transmat, emission), PEOPLE)
        found.append(settling.change)
    return found


def test_nothing_is_known_before_four_blocks():
    assert course([0.1, 0.12, 0.11]) == [2.0, 2.0, 2.0]


def test_steps_to_and_fro_are_noise():
    """The last two steps are 0.01 and 0.02 (L1 0.02 and 0.04 in one of two rows)."""
    assert course([0.1, 0.12, 0.11, 0.13])[-1] == pytest.approx(0.02)
    assert course([0.1, 0.12, 0.13, 0.11, 0.115])[-1] == pytest.approx(0.02)


def test_a_drift_is_followed_to_its_end():
    """Steps halve, 0.08 to 0.01: as much as the step before last is the most that remained."""
    moves = 0.1 + np.cumsum([0.0, 0.08, 0.04, 0.02, 0.01])
    assert course(moves)[-1] == pytest.approx(0.02 / (1 - 0.5))


def test_a_drift_that_does_not_slow_down_is_not_settled():
    assert course(0.001 * np.arange(6))[-1] == 2.0
    assert course(0.001 * 1.5 ** np.arange(6))[-1] == 2.0
    # One answer that all is well, after one that it is not, does not count.
    assert course([0.1, 0.101, 0.102, 0.1015])[-1] == 2.0
    assert course([0.1, 0.101, 0.102, 0.1015, 0.102])[-1] < 0.01


def test_what_stands_still_has_settled():
    assert course([0.1] * 4)[-1] == 0.0


def test_a_learned_emission_counts():
    settling = Settling()
    for shown in (0.6, 0.62, 0.61, 0.62):
        settling.report(
            HMM.categorical([0.5, 0.5], np.eye(2), [[shown, 1 - shown], [0.5, 0.5]]), PEOPLE
        )
    assert settling.change == pytest.approx(0.01)
