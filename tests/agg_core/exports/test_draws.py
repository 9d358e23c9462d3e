import io
from dataclasses import replace

import numpy as np
import openmatrix
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import t

from agg_core.exports import EXPORTS, ExportInput
from agg_core.exports import draws as of_draws
from agg_core.exports.draws import draws_netcdf, draws_omx, has_draws_omx
from agg_core.study.counts import USUAL
from agg_core.study.result import ESTIMATE, WHOLE_DAY
from tests.agg_core import counted, tiny
from tests.agg_core.exports import by_hand
from tests.faults import refused


def opened(content):
    with xr.open_dataset(io.BytesIO(content), engine="scipy") as data:
        return data.load()


def test_xarray_reads_every_draw():
    result = counted.drawn()
    data = opened(draws_netcdf(result))
    assert dict(data.sizes) == {"draw": 3, "time": 2, "origin": 10, "dest": 10}
    assert data["time"].to_numpy().tolist() == [counted.MORNING, counted.NIGHT]
    for time in result.times_of_draws:
        at = data.sel(time=time)
        np.testing.assert_array_equal(at["flow"], result.draws(time))
        np.testing.assert_array_equal(at["estimate"], result.matrix(time))
    assert data["flow"].attrs["units"] == "people per step"


def test_cells_have_their_names_and_places():
    data = opened(draws_netcdf(counted.drawn()))
    assert data["cell_name"].to_numpy().tolist() == [*counted.study().cells, "outside"]
    places = np.stack([data["longitude"], data["latitude"]], axis=1)
    np.testing.assert_allclose(places[:9], counted.study().states.placed_grid.centroids)
    assert np.isnan(places[9]).all()


def test_any_sum_of_draws_is_that_of_the_parquet_file():
    result = counted.drawn()
    data = opened(draws_netcdf(result, USUAL))
    content = EXPORTS["ensemble"].make(ExportInput(result, counted.MORNING, source=USUAL))
    table = pd.read_parquet(io.BytesIO(content)).groupby(["draw", "time"])["count"].sum()
    sums = data["flow"].sum(["origin", "dest"]).to_series()
    np.testing.assert_allclose(sums.to_numpy(), table.to_numpy())


def test_names_in_any_script_are_kept():
    cells = ("東京", "köln", "a", *(f"cell {i}" for i in range(3, 9)))
    data = opened(draws_netcdf(replace(counted.drawn(), cells=cells)))
    assert data["cell_name"].to_numpy().tolist()[:3] == ["東京", "köln", "a"]


def test_flows_within_a_reach_are_pairs():
    result = tiny.run(tiny.people(), tiny.settings(reach_m=12_000.0, replicates=2))[-1]
    data = opened(draws_netcdf(result))
    assert result.is_sparse
    assert set(data["flow"].dims) == {"draw", "time", "pair"}
    at = data["pair_origin"].to_numpy(), data["pair_dest"].to_numpy()
    for number, time in enumerate(result.times_of_draws):
        for draw, table in enumerate(result.draws(time)):
            np.testing.assert_array_equal(
                data["flow"].to_numpy()[draw, number], table.toarray()[at]
            )
        whole = result.matrix(time).toarray()
        assert data["estimate"].to_numpy()[number].sum() == pytest.approx(whole.sum())


def test_more_draws_than_the_format_holds_are_refused(monkeypatch):
    monkeypatch.setattr(of_draws, "MOST_BYTES", 3 * 2 * 100 * 8 - 1)
    with refused("too-many-cells", "Parquet"):
        draws_netcdf(counted.drawn())


def test_a_result_without_draws_has_neither():
    assert not has_draws_omx(counted.study())
    for make in (lambda: draws_netcdf(by_hand.result()),
                 lambda: draws_omx(by_hand.result(), by_hand.MORNING)):  # fmt: skip
        with refused("nothing-to-export"):
            make()


@pytest.mark.parametrize("moment", [counted.MORNING, WHOLE_DAY])
def test_openmatrix_reads_the_estimate_and_how_sure_it_is(tmp_path, moment):
    result = counted.drawn()
    path = tmp_path / "draws.omx"
    path.write_bytes(draws_omx(result, moment, ESTIMATE))
    with openmatrix.open_file(str(path)) as file:
        assert sorted(file.list_matrices()) == ["estimate", "mean", "q05", "q95"]
        found = {name: np.array(file[name]) for name in file.list_matrices()}
        about = file["q05"].attrs
        assert (str(about["time"]), about["n_draws"]) == (moment, 3)
    draws = result.draws(moment)
    np.testing.assert_array_equal(found["estimate"], result.matrix(moment))
    np.testing.assert_allclose(found["mean"], draws.mean(axis=0))
    # The interval of a next draw, by Student's distribution.
    reach = t.ppf([0.05, 0.95], df=2)[:, None, None] * draws.std(axis=0, ddof=1) * np.sqrt(4 / 3)
    ends = np.maximum(draws.mean(axis=0) + reach, 0)
    np.testing.assert_allclose([found["q05"], found["q95"]], ends, atol=1e-9)


def test_only_sources_that_err_in_worlds_have_draws():
    people = tiny.run(tiny.people(), tiny.settings(replicates=2))[-1]
    assert people.sources_of_draws == (ESTIMATE,)
    assert set(people.sources) > {ESTIMATE}
    assert counted.drawn().sources_of_draws == (ESTIMATE, USUAL)
    assert counted.both().sources_of_draws == ()
    for export in EXPORTS.values():
        if export.of_draws:
            asked = ExportInput(people, people.busiest, source="single")
            with refused("nothing-to-export"):
                export.make(asked)
    assert {key for key, export in EXPORTS.items() if export.of_draws} == {
        "ensemble", "draws-netcdf", "omx-draws",
    }  # fmt: skip
