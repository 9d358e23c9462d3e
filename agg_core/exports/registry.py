"""All exports by key: what each is, what opens it, and when it can be had."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agg_core.base.errors import InputError
from agg_core.exports.draws import draws_netcdf, draws_omx, has_draws_omx
from agg_core.exports.flowmap_blue import flowmap_blue
from agg_core.exports.geo import (
    geojson_cells,
    geojson_flows,
    geopackage,
    geoparquet_cells,
    geoparquet_flows,
)
from agg_core.exports.matrices import (
    check_omx,
    check_sheet,
    fits_in_omx,
    fits_in_sheet,
    od_csv,
    omx,
    omx_times,
)
from agg_core.exports.models import (
    ensemble_parquet,
    flows_csv,
    flows_parquet,
    has_ensemble,
    has_observed,
    observed_csv,
    parameters_csv,
    parameters_npz,
)
from agg_core.exports.page import html_page
from agg_core.exports.simwrapper import simwrapper
from agg_core.exports.sumo import has_clock, sumo
from agg_core.study.result import ESTIMATE, FlowResult

__all__ = ["EXPORTS", "Export", "ExportInput", "check_limit", "days_in", "export_file_name"]


@dataclass(frozen=True)
class ExportInput:
    """One moment of a result, and the source for formats that hold only one.

    Raises
    ------
    InputError
        If the result has no such moment or source.
    """

    result: FlowResult
    time: str
    title: str = ""
    source: str = ESTIMATE

    def __post_init__(self) -> None:
        self.result.check(self.time, self.source)


def _always(_: FlowResult) -> bool:
    return True


def _refuse_nothing(_: FlowResult) -> None:
    """What has no limit of size."""


def _has_places(result: FlowResult) -> bool:
    return result.states.grid is not None


def _has_flows(result: FlowResult) -> bool:
    return bool(result.times_of_day)


def _has_times(result: FlowResult) -> bool:
    return len(result.times_of_day) > 1


def _has_timeline(result: FlowResult) -> bool:
    """Whether its times are those of a clock, and its cells on a map."""
    clock = all(re.fullmatch(r"[0-2]\d:[0-5]\d", time) for time in result.times_of_day)
    return clock and _has_times(result) and _has_places(result)


@dataclass(frozen=True)
class Export:
    """A format: ``make`` gives its bytes, ``about`` says in one sentence what opens it.

    ``suffix`` ends the name of the file, which begins with ``stem``, or else with the key;
    ``of_all_times`` says that it does not depend on the time, ``one_source`` that it holds the
    flows of the source asked for alone, ``of_draws`` that this has to be one that has draws,
    ``titled`` that the title is in it, ``of_days`` that what happened is, so that it is another one
    of chosen days; ``limitable`` that flows of few people can be withheld from it (see
    `agg_core.evidence.privacy`); ``available`` tells whether a result has what it takes, and
    ``check`` says in a sentence what it has too much of.
    """

    key: str
    label: str
    about: str
    suffix: str
    mime: str
    make: Callable[[ExportInput], bytes]
    of_all_times: bool = False
    one_source: bool = False
    of_draws: bool = False
    titled: bool = False
    of_days: bool = True
    limitable: bool = True
    stem: str = ""
    available: Callable[[FlowResult], bool] = _always
    check: Callable[[FlowResult], None] = _refuse_nothing


def export_file_name(
    export: Export, time: str, days: Sequence[str] = (), least_people: float | None = None
) -> str:
    """Name of the file in plain ASCII, of the format, the time, chosen days and a limit alone."""
    parts = [export.stem or export.key]
    if days and export.of_days:
        parts.append(days[0] if len(days) == 1 else f"{len(days)}-days-from-{min(days)}")
    if not export.of_all_times:
        parts.append(re.sub(r"[^0-9a-z]+", "-", time.lower()).strip("-"))
    if least_people is not None:
        parts.append(f"at-least-{least_people:g}-people")
    return "-".join(filter(None, parts)) + export.suffix


def check_limit(export: Export, result: FlowResult) -> None:
    """Refuse a format that holds more than flows, where the result is limited.

    Raises
    ------
    InputError
        If it cannot be limited.
    """
    if result.limit_words and not export.limitable:
        raise InputError(
            f"{export.label} cannot be limited to flows of many people; choose another format, or "
            "leave the limit out.",
            code="cannot-be-limited",
        )


def days_in(export: Export, asked: ExportInput) -> tuple[str, ...]:
    """The chosen days that the file is of: none where it holds nothing of what happened."""
    of_days = asked.result.sources_of_days
    holds = export.of_days and (not export.one_source or asked.source in of_days)
    return asked.result.chosen_days if holds else ()


_LIST = (
    Export(
        "html", "Map as a page", "A page with the maps of one moment, for any browser, offline.",
        ".html", "text/html", lambda x: html_page(x.result, x.time, x.title), stem="flow-map",
        titled=True, available=_has_places,
    ),
    Export(
        "flowmap-blue", "flowmap.blue",
        "A zip of three tables to paste into flowmap.blue, flows of one source.",
        ".zip", "application/zip",
        lambda x: flowmap_blue(x.result, [x.time], x.source, x.title), one_source=True,
        titled=True, available=_has_places,
    ),
    Export(
        "flowmap-blue-times", "flowmap.blue, all times",
        "The same with every time of day, for the timeline of flowmap.blue.",
        ".zip", "application/zip",
        lambda x: flowmap_blue(x.result, x.result.times_of_day, x.source, x.title),
        of_all_times=True, one_source=True, titled=True, available=_has_timeline,
    ),
    Export(
        "flows-csv", "Flows as a table",
        "One row per flow with all that is known of it, for spreadsheets, R and pandas.",
        ".csv", "text/csv", lambda x: flows_csv(x.result, x.time),
    ),
    Export(
        "flows-csv-times", "Flows as a table, all times", "The same with every time of day.",
        ".csv", "text/csv", lambda x: flows_csv(x.result, *x.result.times_of_day),
        of_all_times=True, available=_has_times,
    ),
    Export(
        "flows-parquet", "Flows as Parquet, all times",
        "One row per flow and time of day, for pandas, polars, DuckDB and R.",
        ".parquet", "application/vnd.apache.parquet", lambda x: flows_parquet(x.result),
        of_all_times=True, available=_has_flows,
    ),
    Export(
        "ensemble", "Draws of the flows",
        "Flow tables of one source that may have been, of which any sum tells how sure it is.",
        ".parquet", "application/vnd.apache.parquet",
        lambda x: ensemble_parquet(x.result, x.source), of_all_times=True, one_source=True,
        of_draws=True, limitable=False,
        available=has_ensemble,
    ),
    Export(
        "draws-netcdf", "Draws of the flows as NetCDF",
        "The same tables as one array of draws, times, origins and dests, for xarray and R.",
        ".nc", "application/x-netcdf", lambda x: draws_netcdf(x.result, x.source),
        of_all_times=True, one_source=True, of_draws=True, limitable=False,
        available=has_ensemble,
    ),
    Export(
        "od-csv", "Origin-destination matrix",
        "A square table of one source, for spreadsheets.",
        ".csv", "text/csv", lambda x: od_csv(x.result, x.time, x.source), one_source=True,
        available=fits_in_sheet, check=check_sheet,
    ),
    Export(
        "omx", "OMX",
        "Matrices of one moment for transport models: openmatrix, Emme, Visum, TransCAD, Cube.",
        ".omx", "application/octet-stream", lambda x: omx(x.result, x.time),
        available=fits_in_omx, check=check_omx,
    ),
    Export(
        "omx-times", "OMX, all times", "The same with a matrix for every time of day.",
        ".omx", "application/octet-stream", lambda x: omx_times(x.result, x.source),
        of_all_times=True, one_source=True,
        available=lambda result: _has_times(result) and fits_in_omx(result), check=check_omx,
    ),
    Export(
        "omx-draws", "OMX, how sure",
        "Matrices of one moment and source as estimated, in the mean of draws, and at the ends of "
        "an interval of nine in ten, for transport models.",
        ".omx", "application/octet-stream", lambda x: draws_omx(x.result, x.time, x.source),
        one_source=True, of_draws=True, limitable=False, available=has_draws_omx, check=check_omx,
    ),
    Export(
        "sumo", "SUMO",
        "A zip of zones and of trips between them at every time of day, for od2trips.",
        ".zip", "application/zip", lambda x: sumo(x.result, x.source), of_all_times=True,
        one_source=True, available=has_clock,
    ),
    Export(
        "simwrapper", "SimWrapper",
        "A zip of a dashboard with flows on two maps and as a table, for SimWrapper.",
        ".zip", "application/zip",
        lambda x: simwrapper(x.result, x.time, x.source, x.title), one_source=True, titled=True,
        available=_has_places,
    ),
    Export(
        "geojson-flows", "Flows as GeoJSON", "Lines between cells for QGIS, kepler.gl and the web.",
        ".geojson", "application/geo+json", lambda x: geojson_flows(x.result, x.time),
        available=_has_places,
    ),
    Export(
        "geojson-cells", "Cells as GeoJSON",
        "Cells with people in, out and staying for QGIS, kepler.gl and the web.",
        ".geojson", "application/geo+json", lambda x: geojson_cells(x.result, x.time),
        available=_has_places,
    ),
    Export(
        "geopackage", "GeoPackage", "Lines between cells, and the cells, as two layers for QGIS.",
        ".gpkg", "application/geopackage+sqlite3", lambda x: geopackage(x.result, x.time),
        available=_has_places,
    ),
    Export(
        "geoparquet-flows", "Flows as GeoParquet",
        "Lines between cells for geopandas, DuckDB and QGIS.",
        ".parquet", "application/vnd.apache.parquet",
        lambda x: geoparquet_flows(x.result, x.time), available=_has_places,
    ),
    Export(
        "geoparquet-cells", "Cells as GeoParquet",
        "Cells with people in, out and staying for geopandas, DuckDB and QGIS.",
        ".parquet", "application/vnd.apache.parquet",
        lambda x: geoparquet_cells(x.result, x.time), available=_has_places,
    ),
    Export(
        "parameters-npz", "Parameters as arrays",
        "What was learned at every time, with the settings, for numpy.",
        ".npz", "application/zip", lambda x: parameters_npz(x.result), of_all_times=True,
        limitable=False,
    ),
    Export(
        "parameters-csv", "Parameters as tables",
        "A zip of two tables of probabilities at every time, for R and spreadsheets.",
        ".zip", "application/zip", lambda x: parameters_csv(x.result), of_all_times=True,
        of_days=False, limitable=False,
    ),
    Export(
        "observed-csv", "Observed counts",
        "People per cell and step as they were observed, noise and all, for spreadsheets.",
        ".csv", "text/csv", lambda x: observed_csv(x.result, x.time), available=has_observed,
    ),
)  # fmt: skip

EXPORTS: Mapping[str, Export] = {export.key: export for export in _LIST}
