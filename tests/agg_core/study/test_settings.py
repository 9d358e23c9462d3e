import json
from dataclasses import FrozenInstanceError, fields

import pytest

from agg_core.base.options import options_of
from agg_core.learn.table import LEARNERS
from agg_core.space.settings import GridSettings, parse_bbox, parse_grid_size
from agg_core.study.settings import (
    LearnSettings,
    StudySettings,
    WindowSettings,
    parse_clock,
    parse_minutes,
)
from tests.agg_core.tiny import is_one_sentence
from tests.faults import refused

EXTENT = ("west", "south", "east", "north")
KINDS = (GridSettings, WindowSettings, LearnSettings)
RANGED = [
    pytest.param(kind, name, option, id=f"{kind.__name__}.{name}")
    for kind in KINDS
    for name, option in options_of(kind).items()
    if option.least is not None or option.most is not None
]


OPPOSITE = {"west": "east", "east": "west", "south": "north", "north": "south"}


def just_beyond(kind, name, bound, sign):
    """The nearest value beyond a bound that a person would type."""
    whole = isinstance(getattr(kind(), name), int) or name == "max_gap_minutes"
    return bound + sign * (1 if whole else 0.001)


# ---------------------------------------------------------------- ranges


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_an_option_in_order(kind):
    stated = [f.name for f in fields(kind) if f.name != "names"]
    assert list(options_of(kind)) == stated
    assert options_of(kind) == options_of(kind())
    assert all(option.label and option.help for option in options_of(kind).values())


def test_numbers_without_a_range_are_none():
    unranged = [
        name
        for kind in KINDS
        for name, option in options_of(kind).items()
        if option.least is None or option.most is None
    ]
    assert unranged == ["times", "observed", "noise", "inference", "strength", "start"]


@pytest.mark.parametrize(
    ("kind", "name", "option"), [p for p in RANGED if p.values[1] not in EXTENT]
)
def test_the_ends_of_a_range_belong_to_it(kind, name, option):
    for bound in (option.least, option.most):
        # An extent must not be empty: give it the whole globe but for the border in question.
        globe = {"west": -180, "south": -90, "east": 180, "north": 90}
        others = {k: v for k, v in globe.items() if kind is GridSettings and k != name}
        if name == "calibrate":
            others = {"inference": "cavity"}
        if name in OPPOSITE and bound == globe[OPPOSITE[name]]:
            with refused("empty-extent"):
                kind(**{name: bound}, **others)
            continue
        assert getattr(kind(**{name: bound}, **others), name) == bound


def test_the_whole_globe_is_an_extent():
    known = options_of(GridSettings)
    west, south = (known[side].least for side in EXTENT[:2])
    # An extent may end beyond 180 degrees, but not go around more than once.
    globe = GridSettings(west, south, west + 360, known[EXTENT[3]].most)
    assert globe.make().bounds == (-180, -90, 180, 90)


@pytest.mark.parametrize(("kind", "name", "option"), RANGED)
def test_beyond_a_range_one_sentence_tells_name_range_and_unit(kind, name, option):
    for bound, sign in ((option.least, -1), (option.most, 1)):
        with refused("value-out-of-range") as fault:
            kind(**{name: just_beyond(kind, name, bound, sign)})
        sentence = str(fault.value)
        assert is_one_sentence(sentence)
        least = f"{option.shown(option.least):g}"
        assert sentence.startswith(f"{option.label} must lie between {least} and ")
        assert option.unit in sentence


@pytest.mark.parametrize(("kind", "name", "option"), RANGED)
def test_the_refused_value_is_shown_as_it_was_given(kind, name, option):
    value = just_beyond(kind, name, option.most, 1)
    with refused("value-out-of-range") as fault:
        kind(**{name: value})
    shown = str(fault.value).rpartition("it was ")[2].rstrip(".").replace(",", "")
    most = f"{option.shown(option.most):.12g}"
    assert shown != most, "the sentence says that a value in range is wrong"
    assert "e+" not in shown
    assert float(shown) == pytest.approx(option.shown(value), abs=1e-9)


def test_what_is_typed_in_km_is_kept_in_metres():
    option = options_of(LearnSettings)["reach_m"]
    assert (option.unit, option.kept(2.2), option.shown(2200.0)) == ("km", 2200.0, 2.2)
    for km in (0.1, 0.3, 1.7, 12.345, 1234.5678):
        kept = option.kept(km)
        assert option.kept(option.shown(kept)) == kept
        assert kept == pytest.approx(1000 * km)
    others = [o for kind in KINDS for name, o in options_of(kind).items() if name != "reach_m"]
    assert all(o.kept(3.7) == o.shown(3.7) == 3.7 for o in others)


@pytest.mark.parametrize("inference", ["auto", "sampling", "cfb"])
def test_a_reach_goes_with_learners_that_know_it(inference):
    settings = StudySettings(learn=LearnSettings(inference=inference, reach_m=2500.0))
    assert StudySettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.parametrize(
    "inference", [name for name in LEARNERS if name not in ("auto", "sampling", "cfb")]
)
def test_a_reach_is_refused_with_learners_that_look_everywhere(inference):
    LearnSettings(inference=inference)
    with refused("learner-unsuited", inference) as fault:
        LearnSettings(inference=inference, reach_m=2500.0)
    assert is_one_sentence(str(fault.value))


@pytest.mark.parametrize(
    "other",
    [
        {"observed": "positions"}, {"start": "least_squares"}, {"inference": "cfb", "calibrate": 2},
        {"noise": "given", "assumed": 0.0},
    ],
)  # fmt: skip
def test_a_reach_is_refused_with_what_looks_everywhere(other):
    LearnSettings(**other)
    with refused("reach-unsuited") as fault:
        LearnSettings(reach_m=2500.0, **other)
    assert is_one_sentence(str(fault.value))


def test_replicates_of_groups_are_of_no_use_with_a_reach():
    assert "calibrate" not in LearnSettings(inference="cfb").unused
    assert "calibrate" in LearnSettings(inference="cfb", reach_m=2500.0).unused


def test_settings_kept_before_there_was_a_reach_have_none():
    values = StudySettings().to_dict()
    del values["learn"]["reach_m"]
    assert StudySettings.from_dict(values) == StudySettings()


@pytest.mark.parametrize(("kind", "name", "option"), RANGED)
def test_not_a_number_is_in_no_range(kind, name, option):
    with refused("value-out-of-range"):
        kind(**{name: float("nan")})


def test_an_unknown_learner_is_refused_with_the_known_ones():
    with refused("not-a-choice", "Learner", "auto, sampling", "magic"):
        LearnSettings(inference="magic")


def test_settings_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        LearnSettings().seed = 3
    with pytest.raises(FrozenInstanceError):
        StudySettings().grid = GridSettings()


def test_grid_settings_make_the_grid_and_its_checks():
    grid = GridSettings(-74.2, 40.5, -73.8, 40.9, 4, 5).make()
    assert grid.bounds == (-74.2, 40.5, -73.8, 40.9)
    assert (grid.rows, grid.cols) == (4, 5)
    with refused("empty-extent"):
        GridSettings(west=140.24, east=139.28).make()


def test_steps_and_gaps_are_spelled_as_durations():
    window = WindowSettings(step_minutes=20, max_gap_minutes=45)
    assert (window.step, window.max_gap) == ("20min", "45min")
    assert WindowSettings().max_gap is None


# ---------------------------------------------------------------- to a dict and back

OTHER = StudySettings(
    GridSettings(-74.1, 40.6, -73.9, 40.8, 5, 7),
    WindowSettings(20, 4, ("08:00", "20:00"), 90),
    LearnSettings(
        3, "cells", 0.1, "given", 0.2, 250.0, "cavity", 2, "given", 1.5, "distance", 12, 4.5, 99
    ),
)


@pytest.mark.parametrize("settings", [StudySettings(), OTHER], ids=["defaults", "others"])
def test_settings_survive_json(settings):
    text = json.dumps(settings.to_dict(), allow_nan=False)
    assert StudySettings.from_dict(json.loads(text)) == settings


def test_the_dict_has_every_field_of_every_part():
    values = OTHER.to_dict()
    assert {part: list(entry) for part, entry in values.items()} == {
        "grid": [f.name for f in fields(GridSettings) if f.name != "names"],
        "window": [f.name for f in fields(WindowSettings)],
        "learn": [f.name for f in fields(LearnSettings)],
    }
    assert values["window"]["times"] == ["08:00", "20:00"]


def test_settings_from_a_dict_are_checked_again():
    values = StudySettings().to_dict()
    values["learn"]["group_size"] = 0
    with refused("value-out-of-range", "Group size, M"):
        StudySettings.from_dict(values)


@pytest.mark.parametrize(
    ("kept", "now"),
    [
        ({"inference": "moments"}, {"inference": "least_squares"}),
        ({"start": "moments", "inference": "cfb", "calibrate": 3},
         {"start": "least_squares", "inference": "cfb", "calibrate": 3}),
        ({"inference": "moments", "start": "moments", "calibrate": 3},
         {"inference": "least_squares", "start": "least_squares", "calibrate": 0}),
    ],
)  # fmt: skip
def test_settings_kept_under_names_of_earlier_versions_are_read(kept, now):
    values = StudySettings().to_dict()
    values["learn"] |= kept
    assert StudySettings.from_dict(values).learn == LearnSettings(**now)
    assert values["learn"]["calibrate"] == kept.get("calibrate", 0), "the dict stays as it was"


@pytest.mark.parametrize("noise", [{}, {"noise": "auto"}, {"noise": "given", "assumed": 0.2}])
def test_settings_of_positions_kept_before_metres_were_learned_are_told_those_added(noise):
    values = StudySettings().to_dict()
    for name in ("assumed_m", "noise", "assumed"):
        del values["learn"][name]
    values["learn"] |= {"observed": "positions", "sigma_m": 250.0, **noise}
    found = StudySettings.from_dict(values).learn
    assert (found.noise, found.assumed_m) == ("given", 250.0)


def test_of_counts_of_cells_they_keep_what_they_said():
    values = StudySettings().to_dict()
    del values["learn"]["assumed_m"]
    found = StudySettings.from_dict(values).learn
    assert (found.noise, found.assumed_m) == ("auto", 0.0)
    metres = StudySettings(learn=LearnSettings(observed="positions", sigma_m=250.0))
    assert StudySettings.from_dict(metres.to_dict()) == metres


@pytest.mark.parametrize(
    ("chosen", "unused"),
    [
        ({}, {"assumed", "assumed_m"}),
        ({"noise": "given"}, {"assumed_m"}),
        ({"observed": "positions"}, {"misclassify", "assumed", "assumed_m"}),
        ({"observed": "positions", "noise": "given"}, {"misclassify", "assumed"}),
    ],
)
def test_what_is_told_of_the_noise_is_of_use_where_it_is_given(chosen, unused):
    noise = {"misclassify", "noise", "assumed", "assumed_m", "sigma_m"}
    assert noise & {*LearnSettings(**chosen).unused} == unused


def test_settings_kept_with_a_learner_of_a_package_that_is_gone_say_so():
    values = StudySettings().to_dict()
    values["learn"]["inference"] = "theirs"
    with refused("unknown-learner", "'theirs'"):
        StudySettings.from_dict(values)


# ---------------------------------------------------------------- what people type


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("139.28,35.36,140.24,36.06", (139.28, 35.36, 140.24, 36.06)),
        ("-74.1, 40.6, -73.9, 40.8", (-74.1, 40.6, -73.9, 40.8)),
        ("0,-1,2,3e0", (0.0, -1.0, 2.0, 3.0)),
    ],
)
def test_parse_bbox(text, values):
    assert parse_bbox(text) == values


@pytest.mark.parametrize(
    "text", ["", "1,2,3", "1,2,3,4,5", "1;2;3;4", "west,2,3,4", "1,2,3,", "1 2 3 4"]
)
def test_parse_bbox_refuses(text):
    with refused("malformed-extent") as fault:
        parse_bbox(text)
    assert is_one_sentence(str(fault.value))


@pytest.mark.parametrize("text", ["14x16", "14X16", "14×16", " 14 x 16 ", "014x16"])
def test_parse_grid_size(text):
    assert parse_grid_size(text) == (14, 16)


@pytest.mark.parametrize("text", ["", "14", "14x", "x16", "14*16", "14x16x2", "-1x4", "1.5x2", "a"])
def test_parse_grid_size_refuses(text):
    with refused("malformed-grid-size") as fault:
        parse_grid_size(text)
    assert is_one_sentence(str(fault.value))


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("20min", 20), ("20", 20), ("20m", 20), (" 20 min ", 20), ("1h", 60), ("0.5h", 30),
     ("1.5h", 90), ("24h", 1440), ("20.0min", 20), ("4.1h", 246)],
)  # fmt: skip
def test_parse_minutes(text, minutes):
    found = parse_minutes(text)
    assert found == minutes
    assert isinstance(found, int)


@pytest.mark.parametrize(
    "text", ["", "0", "0min", "0.5min", "1.01h", "30s", "1d", "-5", "1h30", "h", "nan", "1e3"]
)
def test_parse_minutes_refuses(text):
    with refused("malformed-duration") as fault:
        parse_minutes(text)
    assert is_one_sentence(str(fault.value))


@pytest.mark.parametrize(
    ("text", "clock"),
    [("8:00", "08:00"), ("08:00", "08:00"), (" 9:30 ", "09:30"), ("0:05", "00:05"),
     ("23:59", "23:59")],
)  # fmt: skip
def test_parse_clock(text, clock):
    assert parse_clock(text) == clock


@pytest.mark.parametrize(
    "text", ["", "8", "0800", "8:5", "24:00", "08:60", "-1:00", "08:00:00", "8am", "123:00"]
)
def test_parse_clock_refuses(text):
    with refused("malformed-clock-time") as fault:
        parse_clock(text)
    assert is_one_sentence(str(fault.value))


def test_names_of_cells_are_those_of_the_grid_and_come_back():
    grid = GridSettings(139.0, 35.0, 139.2, 35.1, 1, 2, names=("7", "8"))
    assert grid.make().labels == ["7", "8"]
    assert StudySettings.from_dict(StudySettings(grid=grid).to_dict()).grid == grid
    with refused("lengths-differ"):
        GridSettings(139.0, 35.0, 139.2, 35.1, 2, 2, names=("7", "8"))
