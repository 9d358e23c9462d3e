"""Doubts of flows from counts on their way: from the study to summaries, text and exports."""

import json
from dataclasses import asdict, replace

import numpy as np

from agg_core.cli.summaries import counts_text
from agg_core.study.counts import count_study_steps
from agg_core.study.settings import CountLearnSettings
from tests.agg_core import counted
from tests.agg_core.counts.made import table

QUICK = CountLearnSettings(replicates=0, time="one", strength="given", prior=20.0)


def test_a_study_doubts_what_people_who_move_together_break():
    """Tens of people move as one: the variance of their counts is ten times that of single ones."""
    rng = np.random.default_rng(0)
    rows = 0.8 * np.eye(4) + 0.2 * rng.dirichlet(np.ones(4), 4)
    counts = [np.full(4, 60)]
    for _ in range(4 * 24 - 1):
        counts.append(rng.multinomial(counts[-1], rows).sum(axis=0))
    for size, codes in ((1, set()), (10, {"more-varied", "persistence"})):
        # Expansion is taken as one: else it is found that all counts are multiples of ten.
        settings = replace(QUICK, expansion=1.0)
        *_, study = count_study_steps(table(size * np.array(counts)), settings)
        assert {doubt.code for doubt in study.doubts} == codes
        again = [asdict(doubt) for doubt in study.doubts]
        assert json.loads(json.dumps(study.summary()["doubts"])) == again


def all_day(study):
    """The same with one matrix for all times of day, as its candidates have it."""
    return replace(study, transmats=study.transmats[:1])


def test_doubts_are_told_in_text_and_the_first_in_exports():
    study = all_day(counted.doubted())
    first, second = (doubt.sentence for doubt in counted.DOUBTS)
    assert counts_text(study.summary()).splitlines()[-2:] == [f"doubt: {first}", f"doubt: {second}"]
    assert study.evidence.endswith(first)
    assert second not in study.evidence


def test_without_doubts_nothing_is_said():
    study = all_day(counted.both())
    assert study.summary()["doubts"] == []
    assert "doubt:" not in counts_text(study.summary())
