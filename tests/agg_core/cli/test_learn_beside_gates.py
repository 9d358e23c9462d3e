"""Gates beside counts on the command line."""

import pandas as pd
import pytest

from agg_core.made.counts import simulate_city
from agg_core.store.codec import load_result
from tests.agg_core.cli.told import only_sentence, strict_json

QUICK = ["--time", "one", "--strength", "given", "--replicates", "0", "--tz", "Asia/Tokyo"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Counts of nine cells, a line across them, and what was counted at it, and between cells."""
    folder = tmp_path_factory.mktemp("beside")
    city = simulate_city(3, 3, days=3, people=900, random_state=1)
    counts = pd.DataFrame(city.counts, columns=city.codes, index=city.local.rename("time"))
    counts = counts.reset_index().melt("time", var_name="mesh", value_name="count")
    counts.to_csv(folder / "counts.csv", index=False)
    south, north = [0, 1, 2], [3, 4, 5, 6, 7, 8]
    rows = []
    for t, when in enumerate(city.local[:-1]):
        up = city.moves[t][south][:, north].sum()
        rows += [("bridge", "north", when, 3 * up), ("bridge", "both", when, None)]
    pd.DataFrame(rows, columns=["line", "direction", "time", "count"]).to_csv(
        folder / "line.csv", index=False
    )
    pairs = [
        (city.codes[0], city.codes[1], when, city.moves[t][0, 1])
        for t, when in enumerate(city.local[:-1])
    ]
    pd.DataFrame(pairs, columns=["origin", "dest", "time", "count"]).to_csv(
        folder / "pairs.csv", index=False
    )
    (folder / "line.geojson").write_text(
        '{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": '
        '{"name": "bridge"}, "geometry": {"type": "LineString", "coordinates": '
        "[[139.0, 35.675], [140.0, 35.675]]}}]}"
    )
    return folder


def test_gates_at_a_line(run, files, tmp_path) -> None:
    gates = ["--gates", files / "line.csv", "--screenlines", files / "line.geojson"]
    code, out, err = run(
        "learn", files / "counts.csv", *QUICK, *gates, "--save", tmp_path / "run", "--json"
    )
    assert (code, err) == (0, "")
    told = strict_json(out)["gates"]
    assert (told["n_gates"], told["n_used"], told["error_learned"]) == (1, 71, True)
    assert told["gates"][0]["direction"] == "northbound"
    assert told["set_aside"] == {"missing count": 71}
    assert load_result(tmp_path / "run").summary()["gates"] == told


def test_the_pull_of_gates_is_what_flows_are_without_them(run, files) -> None:
    words = ["learn", files / "counts.csv", *QUICK, "--json"]
    gates = ["--gates", files / "pairs.csv", "--gate-error", "0.05"]
    alone = strict_json(run(*words)[1])
    found = strict_json(run(*words, *gates, "--pull")[1])
    day = found["pull"]["flows"][0]
    assert day["source"] == "gates"
    assert day["n_movers"] == pytest.approx(found["movers"])
    assert day["n_movers_without"] == pytest.approx(alone["movers"])
    assert day["moved"] > 0
    assert {row["source"] for row in found["pull"]["places"]} == {"gates"}


@pytest.mark.parametrize("more", [[], ["--sweep", "seed=1,2"]])
def test_without_another_source_there_is_no_pull(run, files, more) -> None:
    code, out, err = run("learn", files / "counts.csv", *QUICK, *more, "--pull")
    assert (code, out) == (2, "")
    assert "--pull" in only_sentence(err)


def test_gates_between_cells_as_text(run, files) -> None:
    gates = ["--gates", files / "pairs.csv", "--gate-error", "0.05"]
    code, out, err = run("learn", files / "counts.csv", *QUICK, *gates)
    assert (code, err) == (0, "")
    assert "71 counts of 1 gate, errors given: " in out


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--gate-error", "0.05"], "--gate-error"),
        (["--screenlines", "LINES"], "--screenlines"),
        (["--gates", "GATES", "--sweep", "seed=1,2"], "--gates"),
        (["--gates", "GATES", "--count-error", "0.05"], "Gates"),
        (["--gates", "GATES", "--gate-error", "7"], "error of gates"),
    ],
)
def test_what_cannot_be_honoured_is_refused(run, files, words, option) -> None:
    named = {"LINES": files / "line.geojson", "GATES": files / "pairs.csv"}
    words = [named.get(word, word) for word in words]
    code, out, err = run("learn", files / "counts.csv", *QUICK, *words)
    assert (code, out) == (2, "")
    assert option in only_sentence(err)
