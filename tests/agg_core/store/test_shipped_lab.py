"""The shipped teaching view is what its command learns."""

import numpy as np
import pytest

from agg_core.lab.teaching import (
    GROUP_SIZES,
    PAPERS,
    TEACHING_TIME,
    TeachingSettings,
    sample_people,
)
from agg_core.store.shipped_lab import TEACHING_SETTINGS, load_shipped_teaching
from agg_core.study.people import study_steps

ROUNDED = 2.0**-12


def test_it_has_all_group_sizes_by_the_first_settings_of_the_page():
    found = load_shipped_teaching()
    assert found.settings == TEACHING_SETTINGS == TeachingSettings()
    assert found.group_sizes == GROUP_SIZES
    assert found.learners == (PAPERS, "auto")


@pytest.mark.parametrize(("learner", "size"), [(PAPERS, 1), (PAPERS, 20), ("auto", 20)])
def test_it_is_learned_anew(learner, size):
    """The sizes that the story shows first; the others are learned in the same way."""
    found = load_shipped_teaching()
    people = sample_people(TEACHING_SETTINGS.n_people)
    *_, study = study_steps(people, TEACHING_SETTINGS.study(learner, size))
    ours, theirs = found.table(learner, size), study.table(TEACHING_TIME, "estimate")
    np.testing.assert_array_equal(ours[["origin", "dest"]], theirs[["origin", "dest"]])
    np.testing.assert_allclose(ours["count"], theirs["count"], atol=ROUNDED)
    single = study.table(TEACHING_TIME, "single")
    np.testing.assert_allclose(found.truth["count"], single["count"], atol=ROUNDED)
