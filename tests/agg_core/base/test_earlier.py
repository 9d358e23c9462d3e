"""Names of earlier versions: what was kept under them is found under those of today."""

import json

import pytest

from agg_core.base.earlier import of_today
from agg_core.study.settings import StudySettings
from tests.agg_core import tiny


def test_keys_are_named_anew_however_deep_and_values_stay():
    kept = {"anchors": [{"anchor": "08:00", "at": {"anchor": "anchor"}}, "anchors"], "n": 3}
    assert of_today(kept) == {
        "times": [{"time": "08:00", "at": {"time": "anchor"}}, "anchors"],
        "n": 3,
    }


@pytest.mark.parametrize("observed", ["cells", "positions"])
def test_settings_of_before_are_those_of_today(observed):
    noise = {"misclassify": 0.0, "sigma_m": 30.0} if observed == "positions" else {}
    today = tiny.settings(tiny.WindowSettings(60, 3, ("08:00",)), observed=observed, **noise)
    kept = json.loads(json.dumps(today.to_dict()))
    kept["window"]["anchors"] = kept["window"].pop("times")
    kept["learn"]["observed"] = {"cells": "blocks"}.get(observed, observed)
    assert StudySettings.from_dict(kept) == today
