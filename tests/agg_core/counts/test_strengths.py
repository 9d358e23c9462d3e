"""Strengths that may have been chosen as well as the best one, and worlds that learn with them."""

from collections import Counter

import numpy as np
import pytest

from agg_core.counts import certainty
from agg_core.counts.certainty import replicates
from agg_core.counts.choosing import DRAWN, Candidate, Trial, strengths_about
from agg_core.counts.rows import Strength
from tests.agg_core.counts import made


def trial(scores, **strength):
    found = Candidate(DRAWN, Strength(**strength), float(np.mean(scores)))
    return Trial(found, tuple, np.array(scores, dtype=float))


def test_candidates_are_drawn_as_often_as_they_are_the_best():
    # One of two pairs tells for each; both are drawn, or the same twice: ties go to the first.
    first, second = trial([1.0, 0.0], prior=5.0), trial([0.0, 1.0], prior=20.0)
    drawn = strengths_about([first, second], first, 100)
    # Drawing the second pair twice, a quarter of all cases, is where the second one wins.
    assert Counter(s.prior for s in drawn)[20.0] == pytest.approx(25, abs=6)
    assert len(drawn) == 100


def test_the_best_by_far_is_always_drawn_and_other_layers_never():
    best = trial([5.0, 6.0, 7.0], prior=5.0)
    others = [
        trial([1.0, 2.0, 3.0], prior=20.0),
        trial([9.0, 9.0, 9.0], prior=5.0, hours=3.0),
    ]
    assert strengths_about([*others, best], best, 7) == [Strength(5.0)] * 7
    assert strengths_about([best], best, 0) == []


def test_each_world_learns_with_its_own(monkeypatch):
    taken, learn = [], certainty.learn_flows

    def watched(pairs, shape, learner, strength, **options):
        taken.append(strength.prior)
        return learn(pairs, shape, learner, strength, **options)

    monkeypatch.setattr(certainty, "learn_flows", watched)
    pairs = made.pairs([[5, 3], [4, 4]], [[4, 4], [5, 3]])
    chain = np.array([[0.8, 0.2], [0.3, 0.7]])
    others = [Strength(5.0), Strength(20.0)]
    worlds = replicates(pairs, chain, chain[None], DRAWN, Strength(7.0), 3, others=others)
    assert len(list(worlds)) == 3
    assert taken == [5.0, 20.0, 5.0]
    taken.clear()
    next(replicates(pairs, chain, chain[None], DRAWN, Strength(7.0), 1))
    assert taken == [7.0]
