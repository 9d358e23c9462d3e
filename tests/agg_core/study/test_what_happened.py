"""What happened beside what usually happens: every place that a result goes to x every source."""

import io
import json
import shutil
import zipfile
from dataclasses import replace

import geopandas as gpd
import numpy as np
import openmatrix
import pandas as pd
import pytest

from agg_core.cli.main import main
from agg_core.cli.summaries import counts_text
from agg_core.exports import EXPORTS, ExportInput
from agg_core.exports.geo import cells_frame, flows_frame
from agg_core.exports.page import html_page
from agg_core.exports.tables import wide_flows
from agg_core.store.codec import load_result, save_result
from agg_core.store.runs import RunStore
from agg_core.study.counts import USUAL, CountStudy, count_study_steps
from agg_core.study.result import ESTIMATE, WHOLE_DAY
from agg_core.study.settings import CountLearnSettings
from tests.agg_core import counted
from tests.agg_core.counts import made
from tests.agg_core.exports import by_hand
from tests.agg_core.plotting.unpacked import unpacked_page
from tests.faults import refused
from tests.golden import figures

BOTH, EARLIER = counted.both(), counted.study()
WRITTEN = {
    (ESTIMATE, counted.MORNING): counted.HAPPENED[counted.MORNING],
    (ESTIMATE, counted.NIGHT): counted.HAPPENED[counted.NIGHT],
    (ESTIMATE, WHOLE_DAY): counted.HAPPENED_DAY,
    (USUAL, counted.MORNING): counted.FLOWS[counted.MORNING],
    (USUAL, counted.NIGHT): counted.FLOWS[counted.NIGHT],
    (USUAL, WHOLE_DAY): counted.DAY,
}
"""What was written by hand, by source and moment."""
MOMENTS = (WHOLE_DAY, counted.MORNING, counted.NIGHT)
COLUMNS = ("count", "low", "high", "resolved")
NAMES = {
    ESTIMATE: COLUMNS,
    USUAL: ("usual", "usual_low", "usual_high", "usual_resolved"),
}


def matrix_of(source, moment):
    matrix = np.zeros((10, 10))
    for pair, (count, *_) in WRITTEN[source, moment].items():
        matrix[pair] = count
    return matrix


# ------------------------------------------------------------------------------- the result itself


def test_what_happened_is_the_estimate_and_the_usual_stands_beside_it():
    assert BOTH.sources == (ESTIMATE, USUAL)
    assert BOTH.references == (USUAL,)
    assert BOTH.truths == ()
    assert EARLIER.sources == (ESTIMATE,)
    assert by_hand.result().truths == by_hand.result().references
    for told in ("source_words", "source_label", "source_name"):
        # What was saved before has what is usual for its estimate, and says so.
        assert getattr(EARLIER, told)(ESTIMATE) == getattr(BOTH, told)(USUAL)
        assert getattr(BOTH, told)(ESTIMATE) != getattr(BOTH, told)(USUAL)
    with refused("unknown-source", USUAL):
        EARLIER.rows(WHOLE_DAY, USUAL)


@pytest.mark.parametrize(("source", "moment"), WRITTEN)
def test_rows_and_matrices_of_each_source(source, moment):
    written = WRITTEN[source, moment]
    rows = BOTH.rows(moment, source).set_index(["origin", "dest"])
    assert {pair: tuple(rows.loc[pair, list(COLUMNS)]) for pair in rows.index} == written
    np.testing.assert_array_equal(BOTH.matrix(moment, source), matrix_of(source, moment))
    least = BOTH.rows(moment, source, least=3.0)
    assert len(least) == sum(count >= 3 for count, *_ in written.values())


@pytest.mark.parametrize("moment", MOMENTS)
def test_values_hold_each_source_and_nobody_where_one_lacks_a_flow(moment):
    values = BOTH.values(moment).set_index(["origin", "dest"])
    assert list(values) == [*NAMES[ESTIMATE], *NAMES[USUAL]]
    assert set(values.index) == {*WRITTEN[ESTIMATE, moment], *WRITTEN[USUAL, moment]}
    assert list(values.index) == sorted(values.index)
    for source, names in NAMES.items():
        for pair in values.index:
            expected = WRITTEN[source, moment].get(pair, (0.0, 0.0, 0.0, False))
            assert tuple(values.loc[pair, list(names)]) == expected
        assert values[names[-1]].dtype == bool
    assert BOTH.value_columns == (*NAMES[ESTIMATE][:3], *NAMES[USUAL][:3])
    unsure = replace(counted.unsure(), happened=BOTH.happened)
    assert unsure.value_columns == ("count", "usual")
    assert list(unsure.values(moment)) == ["origin", "dest", "count", "usual"]


def test_the_figures_are_of_what_happened():
    told = BOTH.summary()
    # 4 + 3.5 + 2.25 people went elsewhere, 3 + 4.5 + 0.75 usually do; above 2 people are three
    # flows, of which one is not resolved.
    assert (told["movers"], told["usual_movers"]) == (9.75, 8.25)
    assert (told["n_flows"], told["n_resolved"]) == (3, 2)
    assert (told["happened"], told["rhat"], told["n_eff"]) == ("drawn", 1.01, 400.0)
    before = EARLIER.summary()
    assert before["movers"] == before["usual_movers"] == 8.25
    assert before["happened"] is before["rhat"] is before["n_eff"] is None
    json.dumps(told, allow_nan=False)


@pytest.mark.parametrize(("r_hat", "settled"), [(None, True), (1.05, True), (1.06, False)])
def test_it_is_said_where_draws_have_not_settled(r_hat, settled):
    study = replace(counted.both(r_hat), transmats=EARLIER.transmats[:1])
    assert study.happened.settled is settled
    assert ("R-hat" in counts_text(study.summary())) is not settled


# ------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize("key", EXPORTS)
@pytest.mark.parametrize("study", [BOTH, replace(BOTH, grid=None)], ids=["places", "names"])
def test_every_format_takes_every_source_at_every_moment(key, study):
    export = EXPORTS[key]
    if not export.available(study):
        assert not export.available(replace(study, happened=None))
        return
    for source in study.sources if export.one_source else (ESTIMATE,):
        for moment in MOMENTS:
            assert export.make(ExportInput(study, moment, "Week", source))


@pytest.mark.parametrize(("source", "moment"), WRITTEN)
def test_the_matrix_of_each_source_on_the_command_line(source, moment, tmp_path, capsys):
    save_result(BOTH, tmp_path / "run")
    words = ["flows", tmp_path / "run", "--format", "od-csv", "--time", moment, "--out", "-"]
    sources = [["--source", source], []] if source == ESTIMATE else [["--source", source]]
    for chosen in sources:
        assert main(list(map(str, [*words, *chosen]))) == 0
        table = pd.read_csv(io.StringIO(capsys.readouterr().out), index_col="origin")
        np.testing.assert_allclose(table.to_numpy(), matrix_of(source, moment))


@pytest.mark.parametrize("result", [EARLIER, by_hand.result()], ids=["earlier", "people"])
def test_usual_flows_of_what_has_none_are_refused(result, tmp_path, capsys):
    save_result(result, tmp_path / "run")
    words = ["flows", tmp_path / "run", "--format", "od-csv", "--source", USUAL, "--out", "-"]
    assert main(list(map(str, words))) == 2
    assert USUAL in capsys.readouterr().err


@pytest.mark.parametrize("source", [ESTIMATE, USUAL])
def test_files_of_one_source_hold_that(source, tmp_path):
    content = EXPORTS["flowmap-blue"].make(ExportInput(BOTH, counted.MORNING, "Week", source))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        flows = pd.read_csv(archive.open("flows.csv"))
        about = pd.read_csv(archive.open("properties.csv"), index_col="property")["value"]
    inside = {
        (o, d): count
        for (o, d), (count, *_) in WRITTEN[source, counted.MORNING].items()
        if counted.OUT not in (o, d) and o != d and count > 0
    }
    assert flows.set_index(["origin", "dest"])["count"].to_dict() == inside
    assert BOTH.source_words(source) in about["description"]
    path = tmp_path / "flows.omx"
    path.write_bytes(EXPORTS["omx-times"].make(ExportInput(BOTH, WHOLE_DAY, "", source)))
    with openmatrix.open_file(str(path)) as file:
        found = np.array(file["at_23_00"])
    np.testing.assert_array_equal(found, matrix_of(source, counted.NIGHT))


@pytest.mark.parametrize("moment", MOMENTS)
def test_files_of_all_that_is_known_hold_both(moment, tmp_path):
    path = tmp_path / "flows.omx"
    path.write_bytes(EXPORTS["omx"].make(ExportInput(BOTH, moment)))
    with openmatrix.open_file(str(path)) as file:
        assert set(file.list_matrices()) == set(BOTH.value_columns)
        for source, names in NAMES.items():
            np.testing.assert_array_equal(np.array(file[names[0]]), matrix_of(source, moment))
    wide = wide_flows(BOTH, moment)
    csv = pd.read_csv(io.BytesIO(EXPORTS["flows-csv"].make(ExportInput(BOTH, moment))))
    for source, names in NAMES.items():
        for table in (wide, csv):
            some = table.loc[table[names[0]] > 0].set_index(["origin", "dest"])[names[0]]
            assert some.to_dict() == {
                pair: count for pair, (count, *_) in WRITTEN[source, moment].items() if count
            }
    lines = flows_frame(BOTH, moment).set_index(["origin", "dest"])
    pairs = {pair for source in NAMES for pair in WRITTEN[source, moment]}
    assert set(lines.index) == {(o, d) for o, d in pairs if o != d and counted.OUT not in (o, d)}


def test_cells_have_the_totals_of_both():
    cells = cells_frame(BOTH, counted.MORNING).set_index("cell")
    assert isinstance(cells, gpd.GeoDataFrame)
    assert cells.loc[0, ["estimate_out", "estimate_stay", "usual_out", "usual_stay"]].tolist() == [
        8.0 + 2.5, 18.0, 6.0 + 1.5, 20.0,
    ]  # fmt: skip


def test_parameters_hold_what_happened():
    content = EXPORTS["parameters-npz"].make(ExportInput(BOTH, WHOLE_DAY))
    with np.load(io.BytesIO(content)) as arrays:
        happened = arrays["happened"]
    assert happened.shape == (3, 10, 10)
    for slot, moment in ((0, counted.MORNING), (2, counted.NIGHT)):
        np.testing.assert_array_equal(happened[slot], matrix_of(ESTIMATE, moment))
    assert not happened[1].any()
    assert "happened" not in EARLIER.parameters()


def test_the_page_has_the_flows_of_both():
    got = unpacked_page(html_page(BOTH, counted.MORNING, "Week").decode())
    (happened, usual) = (got.flows(source, counted.MORNING) for source in BOTH.sources)
    assert (happened[0, 1], usual[0, 1]) == (8.0, 6.0)
    low, high = (got.flows("usual", counted.MORNING, column=end) for end in ("low", "high"))
    assert (low[0, 1], high[0, 1]) == (4.5, 7.5)
    headings = [source["heading"] for source in got.header["sources"]]
    assert [heading.lower() for heading in headings] == [
        BOTH.source_label(source).lower() for source in BOTH.sources
    ]
    assert "truth" not in str(headings)


# ----------------------------------------------------------------------------------------- storage


@pytest.mark.parametrize(("r_hat", "n_eff"), [(1.01, 250.5), (None, None)])
def test_what_happened_comes_back_to_the_bit(r_hat, n_eff, tmp_path):
    save_result(counted.both(r_hat, n_eff), tmp_path / "run")
    back = load_result(tmp_path / "run")
    assert (back.happened.r_hat, back.happened.n_eff) == (r_hat, n_eff)
    assert back.happened.method == "drawn"
    for name in ("flows", "day_flows"):
        pd.testing.assert_frame_equal(
            getattr(back.happened, name), getattr(BOTH.happened, name), check_exact=True
        )
    assert back.sources == BOTH.sources


def test_a_run_saved_before_opens_and_is_kept_on(tmp_path):
    folder = tmp_path / "old"
    shutil.copytree(figures.RUNS / "counts", folder)
    study = load_result(folder)
    assert isinstance(study, CountStudy)
    assert study.happened is None
    assert study.sources == (ESTIMATE,)
    store = RunStore(tmp_path / "runs")
    kept = store.save(folder, "old")
    assert not any("happened" in name for name in kept.files)
    assert store.load(kept.id).summary() == study.summary()
    assert store.list() == (kept,)


@pytest.mark.parametrize("name", ["happened.parquet", "happened_day.parquet"])
def test_a_table_that_is_missing_is_damage(name, tmp_path):
    save_result(BOTH, tmp_path / "run")
    (tmp_path / "run" / name).unlink()
    with refused("result-damaged"):
        load_result(tmp_path / "run")


# ---------------------------------------------------------------------------------- the whole way

QUICK = CountLearnSettings(strength="given", prior=5.0, time="one", replicates=4, threshold=0.5)
N_CELLS, N_DAYS, N_HOURS, N_PEOPLE = 5, 10, 7, 25


@pytest.fixture(scope="module")
def city():
    return made.chained_table(
        np.random.default_rng(5), 0.5, n_cells=N_CELLS, n_days=N_DAYS, n_hours=N_HOURS,
        n_people=N_PEOPLE,
    )  # fmt: skip


@pytest.fixture(scope="module")
def learned(city):
    *steps, study = count_study_steps(city[0], QUICK)
    return steps, study


def test_a_study_finds_what_happened_with_the_same_seed_the_same_without_worlds(city, learned):
    steps, study = learned
    assert "drawing" in {step.stage for step in steps}
    shares = [step.share for step in steps]
    assert shares == sorted(shares)
    assert study.happened.method == "drawn"
    assert study.happened.settled
    *_, alone = count_study_steps(city[0], replace(QUICK, replicates=0))
    assert alone.happened.r_hat == study.happened.r_hat
    for time in study.times:
        # Rows that worlds list besides have next to nobody.
        np.testing.assert_allclose(alone.matrix(time), study.matrix(time), atol=0.005)


def test_a_study_tells_how_each_flow_has_mixed(learned):
    happened, threshold = learned[1].happened, QUICK.threshold
    flows = pd.concat([happened.flows, happened.day_flows])
    shown = flows.loc[(flows["origin"] != flows["dest"]) & (flows["count"] > threshold)]
    assert len(shown) > 20
    assert shown["rhat"].max() <= happened.r_hat <= 1.05
    assert shown["n_eff"].min() >= happened.n_eff > 100
    for source, has in ((ESTIMATE, True), (USUAL, False)):
        assert ("n_eff" in learned[1].rows(WHOLE_DAY, source)) is has


def test_what_happened_meets_the_counts_and_is_nearer_to_what_did(city, learned):
    table, moves = city
    _, study = learned
    people = table.counts.reshape(N_DAYS, N_HOURS, N_CELLS).mean(axis=0)
    found = {source: [study.matrix(at, source) for at in study.times_of_day] for source in NAMES}
    for hour, flows in enumerate(found[ESTIMATE]):
        # What has less than 0.005 people is not listed.
        np.testing.assert_allclose(flows.sum(axis=1), people[hour], atol=0.005 * N_CELLS)
        np.testing.assert_allclose(flows.sum(axis=0), people[hour + 1], atol=0.005 * N_CELLS)
    happened, usual = (made.common_part(np.stack(found[of]), moves / N_DAYS) for of in NAMES)
    # Usual flows have their movement from simulated worlds, so that they are near as well.
    assert happened > usual + 0.02


def test_intervals_of_what_happened_hold_it(city, learned):
    _, moves = city
    _, study = learned
    day = study.happened.day_flows.assign(slot=0)
    for table, truth, times in (
        (day, moves.sum(axis=0)[None], np.array([study.n_pairs])),
        (study.happened.flows, moves, np.full(N_HOURS - 1, N_DAYS)),
    ):
        ends = np.zeros((2, *truth.shape))
        at = tuple(table[name].to_numpy() for name in ("slot", "origin", "dest"))
        ends[:, *at] = table[["low", "high"]].to_numpy().T * times[at[0]]
        some = (truth > 5) & ~np.eye(N_CELLS, dtype=bool)
        # Whole people: an interval holds a number if it comes within half a person of it.
        held = (ends[0] - 0.5 <= truth) & (truth <= ends[1] + 0.5)
        assert some.sum() > 10
        assert 0.8 <= held[some].mean() <= 1
