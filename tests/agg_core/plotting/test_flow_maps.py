import numpy as np
import pytest
import shapely

from agg_core.plotting import deck, flow_maps
from agg_core.plotting.deck import Scene
from agg_core.plotting.theme import LIGHT, heat_colours
from tests.agg_core.plotting.canvas import SMALL, TOKYO, flows, layers


def test_the_largest_arrow_is_drawn_last_and_coloured_by_the_shared_scale():
    table = flows((0, 1, 90), (1, 4, 40), (5, 2, 60), (3, 3, 999))
    arrows = layers(flow_maps.flow_deck(SMALL, table, vmax=90, threshold=35))["arrows"]["data"]

    assert [arrow["count"] for arrow in arrows] == [40, 60, 90]
    assert arrows[-1]["fill"][:3] == list(LIGHT.arrow[-1])
    assert arrows[-1]["where"] == "from row 0, column 0 to row 0, column 1"
    assert arrows[-1]["what"] == "people per step: 90"


def test_an_arrow_runs_from_its_origin_to_its_destination():
    table = flows((0, 5, 10))
    ring = layers(flow_maps.flow_deck(SMALL, table, vmax=10, threshold=1))["arrows"]["data"][0][
        "ring"
    ]
    tail, tip = np.mean([ring[0], ring[6]], axis=0), np.array(ring[3])

    assert SMALL.assign(*[[tail[0]], [tail[1]]])[0] == 0
    assert SMALL.assign([tip[0]], [tip[1]])[0] == 5


def test_arrow_widths_in_metres_follow_the_scale_of_the_compared_maps():
    def area(count):
        table = flows((0, 1, count))
        deck = flow_maps.flow_deck(SMALL, table, vmax=100, threshold=0)
        ring = layers(deck)["arrows"]["data"][0]["ring"]
        return shapely.Polygon(SMALL.to_metres(ring)).area

    assert area(100) == pytest.approx(area(500))
    assert area(1) < area(50) < area(100)


def test_the_state_outside_has_no_arrow_but_counts_in_its_cell():
    found = layers(flow_maps.flow_deck(SMALL, flows((6, 2, 77), (2, 0, 10)), vmax=77, threshold=1))

    assert [(arrow["origin"], arrow["dest"]) for arrow in found["arrows"]["data"]] == [(2, 0)]
    assert found["cells"]["data"][2]["what"] == "people per step\nin 77, out 10, stay 0.0"


def test_a_reference_shows_beside_the_estimate():
    deck = flow_maps.flow_deck(
        SMALL, flows((0, 1, 90), (1, 2, 50)), vmax=90, threshold=1, reference=flows((0, 1, 1234))
    )
    what = [arrow["what"] for arrow in layers(deck)["arrows"]["data"]]

    assert what == [
        "people per step\nestimate: 50\ntruth: 0.0",
        "people per step\nestimate: 90\ntruth: 1,234",
    ]


@pytest.mark.parametrize(("direction", "kept"), [("in", [20]), ("out", [30]), ("both", [20, 30])])
def test_one_cell_shows_its_own_flows_and_keeps_its_totals(direction, kept):
    table = flows((0, 1, 20), (1, 2, 30), (2, 0, 10))
    deck = flow_maps.flow_deck(SMALL, table, vmax=30, threshold=1, selected=1, direction=direction)
    found = layers(deck)

    assert [arrow["count"] for arrow in found["arrows"]["data"]] == kept
    assert found["cells"]["data"][0]["what"] == "people per step\nin 10, out 20, stay 0.0"


def test_differences_are_signed():
    deck = flow_maps.difference_deck(
        SMALL, flows((0, 1, 90)), flows((0, 1, 50), (1, 2, 70)), vmax=70, threshold=30
    )
    arrows = layers(deck)["arrows"]["data"]

    assert [arrow["count"] for arrow in arrows] == [40, -70]
    assert arrows[1]["fill"][:3] == list(LIGHT.difference[0])
    assert arrows[0]["what"] == "people per step: +40\nestimate: 90\ntruth: 50"


def test_three_hundred_arrows_and_224_cells_stay_below_half_a_megabyte():
    rng = np.random.default_rng(1)
    pairs = rng.choice(224 * 224, 2_000, replace=False)
    table = flows(*zip(pairs // 224, pairs % 224, rng.exponential(100, 2_000), strict=True))
    deck = flow_maps.flow_deck(TOKYO, table, vmax=500, threshold=1, shade="people", reference=table)

    assert len(layers(deck)["arrows"]["data"]) == 300
    assert len(deck.to_json()) < 500_000


def test_half_widths_in_pixels_match_the_view():
    # At the middle latitude a pixel is cos(lat) · 40,075,017 m / (512 · 2^zoom) on the sphere.
    view = deck.fit_view(TOKYO.bounds, 540, 500, margin_px=16)
    metres_per_px = np.cos(np.radians(view.latitude)) * 40_075_017 / (512 * 2**view.zoom)

    in_metres = flow_maps.arrow_half_widths_m(TOKYO)

    np.testing.assert_allclose(
        flow_maps.arrow_half_widths_px(TOKYO, Scene(size_px=(540, 500))),
        np.array(in_metres) / metres_per_px,
        rtol=0.01,
    )


def test_totals_of_estimate_and_truth_stand_under_the_pointer():
    found = layers(
        flow_maps.flow_deck(
            SMALL, flows((0, 1, 20), (1, 1, 5)), vmax=20, threshold=1, reference=flows((1, 0, 12))
        )
    )

    assert found["cells"]["data"][1]["what"] == (
        "people per step\nestimate: in 20, out 0.0, stay 5.0\ntruth: in 0.0, out 12, stay 0.0"
    )


def test_net_arrows_are_the_surplus_and_the_other_side_may_be_negative():
    deck_ = flow_maps.flow_deck(
        SMALL, flows((0, 1, 90), (1, 0, 30), (1, 2, 8)), vmax=90, threshold=10, net=True,
        reference=flows((0, 1, 10), (1, 0, 25)),
    )  # fmt: skip
    arrows = layers(deck_)["arrows"]["data"]

    assert [(arrow["origin"], arrow["dest"], arrow["count"]) for arrow in arrows] == [(0, 1, 60)]
    assert arrows[0]["what"] == ("more people per step than back\nestimate: 60\ntruth: -15")
    # Totals of a cell stay those of all flows.
    assert layers(deck_)["cells"]["data"][0]["what"].startswith(
        "people per step\nestimate: in 30, out 90"
    )


@pytest.mark.parametrize(
    ("shade", "opaque"),
    [("people", [0, 1, 2]), ("incoming", [1]), ("outgoing", [0]), ("stays", [1, 2]),
     ("change", [0, 1])],
)  # fmt: skip
def test_cells_are_shaded_by_what_is_asked_for(shade, opaque):
    table = flows((0, 1, 20), (1, 1, 5), (2, 2, 3), (3, 3, 0.4))
    cells = layers(flow_maps.flow_deck(SMALL, table, vmax=20, threshold=1, shade=shade))["cells"]
    fills = [cell["fill"] for cell in cells["data"]]

    assert [i for i, fill in enumerate(fills) if fill[3]] == opaque
    if shade == "change":  # blue where people leave, orange where they come
        assert fills[0][:3] == list(LIGHT.difference[0])
        assert fills[1][:3] == list(LIGHT.difference[-1])


def test_a_shade_on_a_shared_scale():
    table = flows((0, 0, 25), (1, 1, 100))
    cells = layers(
        flow_maps.flow_deck(SMALL, table, vmax=1, threshold=1, shade="stays", shade_vmax=100)
    )["cells"]["data"]

    assert cells[0]["fill"][:3] == heat_colours(LIGHT, [25], 100)[0].tolist()


def test_net_differences():
    deck_ = flow_maps.difference_deck(
        SMALL, flows((0, 1, 90), (1, 0, 30)), flows((0, 1, 20), (1, 0, 60)), vmax=90, threshold=1,
        net=True,
    )  # fmt: skip
    what = {
        (arrow["origin"], arrow["dest"]): arrow["what"] for arrow in layers(deck_)["arrows"]["data"]
    }

    assert what == {
        (0, 1): "people per step: +60\nestimate: 60\ntruth: 0.0",
        (1, 0): "people per step: -40\nestimate: 0.0\ntruth: 40",
    }


def test_what_is_drawn_and_what_is_not():
    table = flows((0, 1, 20), (1, 0, 5), (1, 2, 30), (2, 6, 4), (3, 1, 0.5))
    whole = flow_maps.drawn_flows(SMALL, table, 4, 1)
    assert (whole.n_above, whole.n_shown, whole.total_moves) == (3, 1, 59.5)
    assert whole.share_shown == pytest.approx(30 / 59.5)
    into = flow_maps.drawn_flows(SMALL, table, 4, selected=1, direction="in")
    assert into.frame["count"].tolist() == [20]
    assert into.total_moves == 20.5
    net = flow_maps.drawn_flows(SMALL, table, 4, net=True)
    assert net.frame["count"].tolist() == [30, 15]
