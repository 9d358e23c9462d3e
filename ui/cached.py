"""Every cache of the dashboard; what comes from uploads is cached per session only."""

from __future__ import annotations

from typing import Any, cast

import pandas as pd
import streamlit as st

from agg_core.base.errors import InputError
from agg_core.base.warmth import is_warm
from agg_core.counts.day_types import DaysNamed, TypedDays
from agg_core.counts.identify import Identifiability
from agg_core.counts.pairs import pairs_of
from agg_core.evidence import places, profiles
from agg_core.evidence.changes import Changes, of_days, of_runs, of_times, what_changed
from agg_core.evidence.examine import Evidence, examine
from agg_core.evidence.places import End
from agg_core.evidence.presets import PRESETS, own_preset
from agg_core.evidence.profiles import Profile, ProfiledKind, profiled_by_name
from agg_core.gates.days import ServiceDays, service_days
from agg_core.io import read_trajectories
from agg_core.io.flow_tables import KnownStates, read_flow_table
from agg_core.io.ground import ground_near
from agg_core.lab.experiments import LabResult
from agg_core.lab.story import morning
from agg_core.lab.teaching import TeachingResult
from agg_core.made import samples
from agg_core.made.samples import SAMPLES, load_outline, make_sample, sample_path
from agg_core.plotting import charts
from agg_core.plotting.beside import flows_beside
from agg_core.plotting.deck import Scene, ground_json
from agg_core.plotting.flow_map import MapFlows, PackedFlows, flows_of, pack
from agg_core.plotting.lab import flows_of_sizes
from agg_core.plotting.story import flows_of_story
from agg_core.plotting.theme import DARK, LIGHT, Theme
from agg_core.space import AreaGrid
from agg_core.space.grid import Bounds
from agg_core.space.settings import AnyGridSettings, AreaSettings
from agg_core.store.codec import load_lab, load_result, load_sweep, load_teaching
from agg_core.store.lab_results import LabStore
from agg_core.store.runs import RunStore, default_folder
from agg_core.store.shipped_lab import TEACHING, load_shipped_teaching
from agg_core.store.shipped_runs import SHIPPED_RUNS, load_shipped
from agg_core.study import scales, sweeps
from agg_core.study.beside import Apart, TwoResults, two_results
from agg_core.study.counts import check_identifiable
from agg_core.study.heat import DayProfile, day_profile, local_dates
from agg_core.study.lasting import CountSizes, Lasting, PeopleSizes, tried_alike
from agg_core.study.memory import count_megabytes, gate_megabytes
from agg_core.study.people import estimate_megabytes
from agg_core.study.reference import PEOPLE_OF_A_DAY, ReferenceComparison, compare_by_day
from agg_core.study.result import ESTIMATE, OUTSIDE_NAME, FlowResult
from agg_core.study.settings import (
    CountLearnSettings,
    GateLearnSettings,
    StudySettings,
    WindowSettings,
)
from agg_core.study.suggest import suggest_grid
from agg_core.study.sweeps import Sweep, SweepResult
from agg_core.tables.counts import CountTable, open_counts
from agg_core.tables.flows import FlowComparison, compare_flows
from agg_core.tables.gates import GateTable, open_gates
from agg_core.tables.sequences import cell_counts
from agg_core.tables.trajectories import Trajectories
from ui.brought import asked as asked_of
from ui.brought import brought
from ui.owner import own_machine, owner
from ui.state import Dataset, Run, state
from ui.workspace import job as find_job
from ui.workspace import jobs, workspace

__all__ = [
    "apart",
    "areas_near",
    "by_day",
    "changes",
    "comparison",
    "count_sample",
    "counts",
    "dates",
    "evidence",
    "experiment",
    "extent",
    "flow_scale",
    "flows_of_place",
    "gate_days",
    "gate_sample",
    "gates",
    "ground",
    "heat",
    "heat_legend",
    "identifiability",
    "is_own",
    "lab_result",
    "lab_store",
    "lasting_of_counts",
    "lasting_of_people",
    "lasting_of_sweep",
    "learners_are_ready",
    "megabytes",
    "megabytes_of_counts",
    "megabytes_of_gates",
    "megabytes_of_sweep",
    "outline",
    "outline_key",
    "packed",
    "packed_story",
    "packed_teaching",
    "packed_two",
    "population_chart",
    "profile",
    "result",
    "result_of",
    "sample",
    "shipped_teaching",
    "store",
    "sweep",
    "teaching",
    "total_scale",
    "trajectories",
    "two_runs",
    "under",
]

THEMES = {theme.name: theme for theme in (LIGHT, DARK)}


@st.cache_resource(show_spinner="Opening the sample city …", max_entries=3)
def sample(key: str, n_people: int | None = None) -> Trajectories:
    """A shipped sample, or one of its kind made with more people; the same for everybody."""
    source = sample_path(key) if n_people is None else make_sample(key, n_people)
    return read_trajectories(source, tz=SAMPLES[key].timezone)


@st.cache_resource(show_spinner="Counting a made-up city …")
def count_sample() -> CountTable:
    """A week of a made-up city, read as an operator delivers them; the same for everybody."""
    return samples.count_sample()


@st.cache_resource(show_spinner="Making up a railway …")
def gate_sample() -> GateTable:
    """Entries and exits of a made-up railway; the same for everybody."""
    return samples.gate_sample()


def outline() -> dict[str, Any] | None:
    """The outline that the session chose to lay under its maps; None for none."""
    chosen = state().outline
    if chosen.kind == "own":
        return workspace().outlines[chosen.key].features
    return _shipped_outline() if chosen.kind == "shipped" else None


def ground(bounds: Bounds) -> dict[str, Any] | None:
    """Land, borders and places of the world about an extent; None if maps are to lie on nothing."""
    return None if state().outline.kind == "none" else ground_near(bounds, outline())


def under(bounds: Bounds, theme: Theme) -> str:
    """What lies under the maps of an extent, in the colours of a theme; see `ground_json`.

    Those about a sample are the same for all who open it.
    """
    opened = state().dataset
    is_shared = opened is not None and opened.shipped is not None and not _own_outline()
    return (_under_sample if is_shared else _under)(bounds, outline_key(), theme.name)


@st.cache_resource(show_spinner=False, max_entries=16)
def _under_sample(bounds: Bounds, outline_key: str, theme: str) -> str:
    return _under_of(bounds, outline_key, theme)


@st.cache_resource(scope="session", show_spinner=False, max_entries=8)
def _under(bounds: Bounds, outline_key: str, theme: str) -> str:
    return _under_of(bounds, outline_key, theme)


def _under_of(bounds: Bounds, outline_key: str, theme: str) -> str:  # noqa: ARG001  # for the key
    scene = Scene(outline=outline(), ground=ground(bounds), theme=THEMES[theme])
    return ground_json(bounds, scene)


@st.cache_resource(scope="session", show_spinner=False, max_entries=4)
def heat_legend(most: float, theme: str) -> Any:
    """Colours of a heatmap that ends at so many people, in a theme of that name."""
    return charts.heat_legend(most, THEMES[theme])


@st.cache_resource(scope="session", show_spinner=False, max_entries=32)
def population_chart(
    totals: tuple[float, ...], labels: tuple[str, ...], theme: str, step: int
) -> Any:
    """People on the grid over the day, with a mark at a step, in a theme of that name."""
    return charts.population_chart(totals, labels, THEMES[theme], step=step)


def outline_key() -> str:
    """What tells one outline from another."""
    chosen = state().outline
    return f"{chosen.kind} {chosen.key}"


def packed(run: str, days: tuple[str, ...], outline_key: str) -> PackedFlows:
    """Flows of a run, or of some days of it, as a map gets them."""
    if run in SHIPPED_RUNS and not days and not _own_outline():
        return _packed_shipped(run, outline_key)
    return _packed(run, days, outline_key)


def _own_outline() -> bool:
    """Whether maps hold something that the session brought."""
    return state().outline.kind == "own"


@st.cache_resource(show_spinner="Packing the flows …", max_entries=8)
def _packed_shipped(run: str, outline_key: str) -> PackedFlows:  # noqa: ARG001  # for the key
    """Those of a shipped run, once for all sessions: it takes megabytes."""
    return _pack(flows_of(result(run)))


@st.cache_resource(scope="session", show_spinner="Packing the flows …", max_entries=4)
def _packed(run: str, days: tuple[str, ...], outline_key: str) -> PackedFlows:  # noqa: ARG001
    return _pack(flows_of(result_of(run, days)))


def _pack(flows: MapFlows) -> PackedFlows:
    return pack(flows, outline=outline(), ground=ground(flows.grid.bounds))


@st.cache_resource(show_spinner=False)
def _shipped_outline() -> dict[str, Any]:
    return load_outline()


def trajectories(dataset: str) -> Trajectories:
    """The session's data set of that id."""
    return workspace().datasets[dataset]


@st.cache_resource(scope="session", show_spinner="Opening the counts …", max_entries=2)
def counts(dataset: str) -> CountTable:
    """The session's counts of that id."""
    return open_counts(workspace().counts[dataset])


@st.cache_resource(scope="session", show_spinner="Opening the entries and exits …", max_entries=2)
def gates(dataset: str) -> GateTable:
    """The session's entries and exits of that id."""
    return open_gates(workspace().gates[dataset])


@st.cache_resource(scope="session", show_spinner="Looking at the days …", max_entries=2)
def gate_days(dataset: str) -> ServiceDays:
    """Days of service of the session's entries and exits of that id.

    Raises
    ------
    InputError
        If no day is whole, or steps are longer than an hour.
    """
    return service_days(gates(dataset))


@st.cache_resource(
    scope="session", show_spinner="Looking at what the counts can tell …", max_entries=2
)
def identifiability(dataset: str, reach_m: float | None) -> Identifiability:
    """Whether the session's counts of that id determine the flows, or those within a reach."""
    return check_identifiable(counts(dataset), reach_m)


@st.cache_resource(scope="session", show_spinner=False, max_entries=8)
def typed_days(dataset: str, days: DaysNamed) -> TypedDays | None:
    """Types of the days of the session's counts of that id, where some are named."""
    table = counts(dataset)
    days.check(table)
    return days.told(pairs_of(table))


def lasting_of_people(opened: Dataset, settings: StudySettings) -> Lasting | None:
    """How long it takes to learn from the session's data; None where the settings do not suit."""
    learn = settings.learn
    shared = _sample_of(opened.key, settings.grid)
    sizes = (_people_sizes if shared is None else _people_sizes_of_sample)(
        shared or opened.key, settings.grid, settings.window, learn.group_size, learn.reach_m
    )
    if sizes is None:
        return None
    return sizes.lasting(learn, remembered=_tried(state().study.finished, opened, settings))


@st.cache_resource(scope="session", show_spinner=False, max_entries=8 + sweeps.MOST_VALUES)
def _people_sizes(
    dataset: str,
    grid: AnyGridSettings,
    window: WindowSettings,
    group_size: int,
    reach_m: float | None,
) -> PeopleSizes | None:
    return _sizes_of(trajectories(dataset), grid, window, group_size, reach_m)


@st.cache_resource(show_spinner=False, max_entries=8)
def _people_sizes_of_sample(
    key: str,
    grid: AnyGridSettings,
    window: WindowSettings,
    group_size: int,
    reach_m: float | None,
) -> PeopleSizes | None:
    """Those of a sample, which many open, once for all sessions."""
    return _sizes_of(sample(key), grid, window, group_size, reach_m)


def _sizes_of(
    data: Trajectories,
    grid: AnyGridSettings,
    window: WindowSettings,
    group_size: int,
    reach_m: float | None,
) -> PeopleSizes | None:
    try:
        return PeopleSizes.of(data, grid.make(), window, group_size, reach_m)
    except InputError:
        return None


def _sample_of(dataset: str, grid: AnyGridSettings) -> str | None:
    """Key of the shipped sample that the session's data are; None where they, or cells, are own."""
    opened = state().dataset
    if opened is None or opened.key != dataset or opened.shipped is None:
        return None
    return None if isinstance(grid, AreaSettings) else SHIPPED_RUNS[opened.shipped].sample


def _cell_counts(dataset: str, grid: AnyGridSettings, window: WindowSettings) -> pd.DataFrame:
    shared = _sample_of(dataset, grid)
    return (_counts if shared is None else _counts_of_sample)(shared or dataset, grid, window)


@st.cache_resource(show_spinner="Counting people per cell …", max_entries=8)
def _counts_of_sample(key: str, grid: AnyGridSettings, window: WindowSettings) -> pd.DataFrame:
    """Those of a sample, which many open, once for all sessions."""
    return cell_counts(sample(key), grid.make(), window.step, window.max_gap)


def lasting_of_counts(opened: Dataset, learn: CountLearnSettings) -> Lasting:
    """How long it takes to learn from the session's counts, of which it is known that it can be."""
    sizes = _sizes_of_counts(opened, learn)
    return sizes.lasting(learn, remembered=_tried(state().counts.finished, opened, learn))


def megabytes_of_counts(opened: Dataset, learn: CountLearnSettings) -> float:
    """Memory that it takes to learn from the session's counts, about."""
    return count_megabytes(_sizes_of_counts(opened, learn), learn)


def megabytes_of_gates(opened: Dataset, learn: GateLearnSettings) -> float:
    """Memory that it takes to learn from the session's entries and exits, about."""
    days = gate_days(opened.key)
    return gate_megabytes(days.n_days, len(days.slot), days.n_stations, learn.draws)


def _sizes_of_counts(opened: Dataset, learn: CountLearnSettings) -> CountSizes:
    return _count_sizes(
        opened.key, learn.time, learn.count_error, learn.expansion, learn.reach_m, learn.holidays,
        learn.day_labels,
    )  # fmt: skip


@st.cache_resource(scope="session", show_spinner=False, max_entries=8)
def _count_sizes(
    dataset: str,
    time: str,
    count_error: float | None,
    expansion: float | None,
    reach_m: float | None,
    holidays: str | None,
    day_labels: tuple[tuple[str, str], ...],
) -> CountSizes:
    learn = CountLearnSettings(
        time=time, count_error=count_error, expansion=expansion, reach_m=reach_m,
        holidays=holidays, day_labels=day_labels,
    )  # fmt: skip
    return CountSizes.of(counts(dataset), learn)


@st.cache_resource(scope="session", show_spinner=False, max_entries=4)
def _lasting_of_each(dataset: str, sweep: Sweep) -> list[Lasting] | None:
    """How long each value takes; None where one does not suit the data."""
    found: list[Lasting] = []
    for each in sweep.each:
        if isinstance(each, StudySettings):
            learn = each.learn
            sizes = _people_sizes(dataset, each.grid, each.window, learn.group_size, learn.reach_m)
            if sizes is None:
                return None
            found.append(sizes.lasting(learn))
        else:
            try:
                found.append(CountSizes.of(counts(dataset), each).lasting(each))
            except InputError:
                return None
    return found


def lasting_of_sweep(opened: Dataset, sweep: Sweep, n_workers: int) -> Lasting | None:
    """How long a comparison takes; None where a value does not suit the session's data."""
    each = _lasting_of_each(opened.key, sweep)
    return None if each is None else sweeps.lasting_of_sweep(each, n_workers)


def megabytes(opened: Dataset, settings: StudySettings) -> float:
    """Memory that learning from the open trajectories takes, about."""
    held = trajectories(opened.key).report
    return estimate_megabytes(held.individuals, held.rows_kept, settings.grid.make(), settings)


def megabytes_of_sweep(opened: Dataset, sweep: Sweep, n_workers: int) -> float | None:
    """The same of a comparison; None of counts, of which none is told."""
    each = [megabytes(opened, one) for one in sweep.each if isinstance(one, StudySettings)]
    return sweeps.megabytes_of_sweep(each, n_workers) if each else None


def _tried(
    before: Run[Any] | None, opened: Dataset, settings: StudySettings | CountLearnSettings
) -> bool:
    """Whether the job that a new one goes on from tried all that is to be tried of its data."""
    if before is None or before.title != opened.title or find_job(before.key) is None:
        return False
    return tried_alike(before.settings, settings)


@st.cache_resource(scope="session", show_spinner="Counting people per cell …", max_entries=8)
def _counts(dataset: str, grid: AnyGridSettings, window: WindowSettings) -> pd.DataFrame:
    return cell_counts(trajectories(dataset), grid.make(), window.step, window.max_gap)


@st.cache_resource(scope="session", show_spinner=False, max_entries=2)
def extent(dataset: str) -> Bounds:
    """Where nearly all fixes of the data set lie."""
    return suggest_grid(trajectories(dataset)).bounds


@st.cache_resource(scope="session", show_spinner=False, max_entries=4)
def areas_near(digest: str, column: str, bounds: Bounds) -> AreaGrid:  # noqa: ARG001  # for the key
    """Of the session's own areas, known by digest and column of names, those that meet an extent.

    Raises
    ------
    InputError
        If none does.
    """
    found = workspace().areas
    assert found is not None
    assert digest == found[1].digest
    return found[1].within(bounds)


def dates(dataset: str, grid: AnyGridSettings, window: WindowSettings) -> list[str]:
    """Local dates that the data set covers."""
    return local_dates(_cell_counts(dataset, grid, window))


@st.cache_resource(scope="session", show_spinner=False, max_entries=16)
def heat(
    dataset: str, grid: AnyGridSettings, window: WindowSettings, date: str | None
) -> DayProfile:
    """People per cell over the day."""
    return day_profile(_cell_counts(dataset, grid, window), grid.make().n_cells, date)


@st.cache_resource(show_spinner=False)
def store() -> RunStore:
    """The saved runs of the server: whoever knows the id of one can open it."""
    return RunStore(default_folder())


@st.cache_resource(scope="session", show_spinner="Opening the result …", max_entries=4)
def result(run: str) -> FlowResult:
    """The flows of a finished job of this session, or of a saved or shipped run, by its id.

    Of a run that another shares, those that are within its limit: all that pages make of flows is
    made of these.
    """
    if run in SHIPPED_RUNS:
        return _shipped(run)
    job = find_job(run)
    if job is not None and job.state == "done":
        return load_result(job.result_folder)
    kept = _saved_as(run)
    return store().load(kept) if is_own(kept) else store().load_for(kept, owner())


def is_own(run_id: str) -> bool:
    """Whether a saved run is of whoever uses this session, who then sees and changes all of it."""
    if own_machine() or run_id in state().made:
        return True
    try:
        return store().owner_of(run_id) == owner()
    except InputError:
        return False


def _saved_as(run: str) -> str:
    """The id under which a job of this session was saved whose folder is no longer kept."""
    now = state()
    shown = (runs.finished for runs in (*now.learned.values(), now.experiments, now.views))
    return next((each.saved for each in shown if each and each.key == run and each.saved), run)


@st.cache_resource(show_spinner=False)
def _shipped(key: str) -> FlowResult:
    """A shipped run; the same for everybody."""
    return load_shipped(key)


def result_of(run: str, days: tuple[str, ...]) -> FlowResult:
    """The same with what happened on some days; on all of them if none are chosen."""
    return _of_days(run, days) if days else result(run)


@st.cache_resource(scope="session", show_spinner=False, max_entries=4)
def _of_days(run: str, days: tuple[str, ...]) -> FlowResult:
    return result(run).of_days(days)


@st.cache_resource(show_spinner=False)
def lab_store() -> LabStore:
    """The results of the Lab that the server keeps; made-up data, the same for everybody."""
    return LabStore(default_folder().with_name("lab"))


@st.cache_resource(show_spinner="Opening the result …", max_entries=8)
def lab_result(key: str) -> LabResult | TeachingResult:
    """One of them, by its key.

    Raises
    ------
    InputError
        If there is none of that key, or it cannot be read.
    """
    return lab_store().load(key)


@st.cache_resource(scope="session", show_spinner="Opening the result …", max_entries=2)
def sweep(run: str) -> SweepResult:
    """What a comparison of this session found, which is in the folder of its job.

    Raises
    ------
    InputError
        If it is not there any more, or damaged.
    """
    return load_sweep(jobs().job(run).result_folder)


@st.cache_resource(scope="session", show_spinner="Opening the result …", max_entries=2)
def experiment(run: str) -> LabResult:
    """What an experiment found: a finished job of this session, or a result that is kept."""
    job = find_job(run)
    if job is not None and job.state == "done":
        return load_lab(job.result_folder)
    return cast("LabResult", lab_result(_saved_as(run)))


@st.cache_resource(scope="session", show_spinner="Opening the result …", max_entries=2)
def teaching(run: str) -> TeachingResult:
    """The flows at every group size: of a finished job of this session, kept, or shipped."""
    if run == TEACHING:
        return shipped_teaching()
    job = find_job(run)
    if job is not None and job.state == "done":
        return load_teaching(job.result_folder)
    return cast("TeachingResult", lab_result(_saved_as(run)))


def packed_teaching(run: str, outline_key: str) -> PackedFlows:
    """The same, as a map of group sizes gets them."""
    if run == TEACHING and not _own_outline():
        return _packed_shipped_teaching(outline_key)
    return _packed_teaching(run, outline_key)


@st.cache_resource(show_spinner=False, max_entries=2)
def _packed_shipped_teaching(outline_key: str) -> PackedFlows:  # noqa: ARG001  # for the key
    return _pack(flows_of_sizes(shipped_teaching()))


@st.cache_resource(scope="session", show_spinner=False, max_entries=2)
def _packed_teaching(run: str, outline_key: str) -> PackedFlows:  # noqa: ARG001  # for the key
    return _pack(flows_of_sizes(teaching(run)))


def two_runs(one: str, other: str) -> TwoResults:
    """Two runs beside each other.

    Raises
    ------
    InputError
        If they cannot be compared cell by cell.
    """
    return two_results(result(one), result(other))


@st.cache_resource(scope="session", show_spinner=False, max_entries=32)
def apart(one: str, other: str, times: tuple[str, ...]) -> Apart:
    """How far the flows of two runs are apart in the mean of some times."""
    return two_runs(one, other).apart(times)


@st.cache_resource(scope="session", show_spinner="Packing the flows …", max_entries=2)
def packed_two(
    one: str,
    other: str,
    headings: tuple[str, str],
    outline_key: str,  # noqa: ARG001  # for the key
) -> PackedFlows:
    """Flows of two runs, as a map with these headings gets them."""
    return _pack(flows_beside(two_runs(one, other), headings))


@st.cache_resource(scope="session", show_spinner="Summing the flows …", max_entries=6)
def evidence(
    run: str,
    days: tuple[str, ...],
    stamp: int,  # noqa: ARG001  # for the key
    preset: str | None,
    own: tuple[float, float, float],
    reference: str | None,
    slot_minutes: float | None,
) -> tuple[Evidence, tuple[str, ...]]:
    """All evidence of a run that the session asked for, and how its files were taken.

    ``stamp`` tells what was brought from what was before; ``own`` are the values of own criteria.

    Raises
    ------
    InputError
        If what was brought does not fit this run.
    """
    found = result_of(run, days)
    criteria = None if preset is None else PRESETS.get(preset)
    if preset == "own":
        lines, of_geh, share = own
        criteria = own_preset(screenlines=lines, counters_geh=of_geh, share=share)
    asked, said = asked_of(found, preset=criteria, reference=reference, slot_minutes=slot_minutes)
    return examine(found, asked), said


@st.cache_resource(scope="session", show_spinner="Comparing day by day …", max_entries=2)
def by_day(
    run: str,
    stamp: int,  # noqa: ARG001  # for the key
) -> ReferenceComparison | None:
    """The flows of each day of a run against the session's reference; None if it does not fit."""
    found, own = result(run), brought()
    states = found.states
    known = KnownStates(
        states.cells, OUTSIDE_NAME, found.times_of_day, found.step_minutes, own.timezone
    )
    try:
        table = read_flow_table(own.tables["reference"][1], known, by_date=True)
        return compare_by_day(found, table, PEOPLE_OF_A_DAY)
    except InputError:
        return None


@st.cache_resource(scope="session", show_spinner=False, max_entries=32)
def flows_of_place(run: str, days: tuple[str, ...], time: str, cell: int, end: End) -> pd.DataFrame:
    """Where people of a cell come from, or go to, of all days or of some."""
    return places.flows_of_place(result_of(run, days), time, cell, end)


@st.cache_resource(scope="session", show_spinner="Comparing …", max_entries=6)
def changes(
    run: str,
    days: tuple[str, ...],
    kind: str,
    before: tuple[str, ...],
    after: tuple[str, ...],
    time: str,
    level: float,
    stamp: int,  # noqa: ARG001  # for the key
) -> Changes:
    """What changed between times, days, or this run and another, of which ``before`` is the id.

    ``after`` is then the title of the other.

    Raises
    ------
    InputError
        If the two sides cannot be compared.
    """
    found = result_of(run, days)
    if kind == "times":
        sides = of_times(found, before, after)
    elif kind == "days":
        sides = of_days(found, before, after, time)
    else:
        sides = of_runs(found, result(before[0]), ("this run", after[0]), time)
    own = brought()
    placed = found.states.grid is not None
    return what_changed(
        sides, lines=own.lines if placed else (), sectors=own.sectors(found) if placed else None,
        level=level,
    )  # fmt: skip


@st.cache_resource(show_spinner=False, ttl=60)
def learners_are_ready() -> bool:
    """Whether all learners are compiled for this machine; the same for everybody."""
    return is_warm()


@st.cache_resource(show_spinner=False)
def shipped_teaching() -> TeachingResult:
    """The teaching view that comes with the package; the same for everybody."""
    return load_shipped_teaching()


@st.cache_resource(show_spinner=False)
def _story() -> MapFlows:
    found = shipped_teaching()
    return flows_of_story(found, morning(found))


def packed_story(outline_key: str) -> PackedFlows:
    """Its flows and the scenes that lead to them, as a map gets them."""
    return (_packed_own_story if _own_outline() else _packed_story)(outline_key)


@st.cache_resource(show_spinner="Opening the story …", max_entries=2)
def _packed_story(outline_key: str) -> PackedFlows:  # noqa: ARG001  # for the key
    """The same for everybody."""
    return _pack(_story())


@st.cache_resource(scope="session", show_spinner="Opening the story …", max_entries=2)
def _packed_own_story(outline_key: str) -> PackedFlows:  # noqa: ARG001  # for the key
    return _pack(_story())


@st.cache_resource(scope="session", show_spinner=False, max_entries=64)
def comparison(
    run: str, time: str, truth: str, threshold: float, days: tuple[str, ...] = ()
) -> FlowComparison:
    """Figures of the estimate against another source at one time, of all days or of some."""
    found = result_of(run, days)
    return compare_flows(found.matrix(time), found.matrix(time, truth), threshold)


@st.cache_resource(scope="session", show_spinner=False, max_entries=8)
def flow_scale(run: str, truth: str | None, days: tuple[str, ...] = ()) -> float:
    """End of the scale of all flow maps of a run, or of some days of it."""
    return scales.flow_scale(result_of(run, days), truth or ESTIMATE)


@st.cache_resource(scope="session", show_spinner=False, max_entries=32)
def total_scale(run: str, truth: str | None, column: str, days: tuple[str, ...] = ()) -> float:
    """End of the scale of its cells."""
    return scales.total_scale(result_of(run, days), truth or ESTIMATE, column)


@st.cache_resource(scope="session", show_spinner="Adding up …", max_entries=32)
def profile(
    run: str,
    days: tuple[str, ...],
    stamp: int,  # noqa: ARG001  # for the key
    reference: str | None,
    kind: ProfiledKind,
    names: tuple[str, ...],
) -> Profile:
    """Flows over the times of day of a line, a sector, a cell or two cells, by their names.

    Raises
    ------
    InputError
        If there is nothing of these names, or what was brought does not fit this run.
    """
    found = result_of(run, days)
    asked, _ = asked_of(found, reference=reference)
    of = profiled_by_name(found.states, names, asked.lines, asked.sectors, kind=kind)
    return profiles.profile(found, of, reference=asked.reference)
