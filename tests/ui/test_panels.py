"""What pieces of pages say."""

import pytest

from agg_core.study.lasting import Lasting
from ui.panels import left_to_do

TOLD = Lasting(18.0, 66.0)


@pytest.mark.parametrize(
    ("share", "remaining_s", "lasting", "words"),
    [
        # The pace of the first steps is that of no other stage.
        (0.0, None, TOLD, ", about 20 s to 1 min in all"),
        (0.09, 500.0, TOLD, ", about 20 s to 1 min in all"),
        (0.1, 40.0, TOLD, ", about 40 s left"),
        (0.5, None, TOLD, ""),
        (0.05, 40.0, None, ", about 40 s left"),
        (0.05, None, None, ""),
    ],
)
def test_what_is_left_to_do(share, remaining_s, lasting, words):
    assert left_to_do(share, remaining_s, lasting) == words
