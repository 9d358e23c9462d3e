"""Counts with a farthest move in a step: what is learned, told and kept of moves within it."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import sparse

from agg_core.base.moves import whole
from agg_core.exports.registry import EXPORTS, ExportInput
from agg_core.made.counts import simulate_city
from agg_core.model.hmm import allowed_moves
from agg_core.space.settings import MeshSettings
from agg_core.store.codec import load_result, save_result
from agg_core.study.counts import (
    USUAL,
    CountProgress,
    CountStudy,
    check_identifiable,
    count_study_steps,
)
from agg_core.study.result import ESTIMATE, WHOLE_DAY
from agg_core.study.settings import CountLearnSettings, learn_settings
from tests.agg_core import tiny
from tests.agg_core.counts import made
from tests.agg_core.sealing import unseal
from tests.faults import refused

EVERYWHERE, NEAR = 50_000.0, 1_200.0
"""Metres: farther than the city is wide, and to cells that share a border."""
QUICK = CountLearnSettings(strength="given", prior=20.0, time="one", replicates=0)


@cache
def city():
    return simulate_city(4, 4, days=3, people=3_000, random_state=2)


@cache
def table():
    return made.city_table(city())


@cache
def learned(reach_m=None, **changed):
    settings = replace(QUICK, reach_m=reach_m, **changed)
    *progress, study = count_study_steps(table(), settings)
    assert isinstance(study, CountStudy)
    assert all(isinstance(step, CountProgress) for step in progress)
    shares = [step.share for step in progress]
    assert shares == sorted(shares)
    return study


def allowed():
    return allowed_moves(MeshSettings(codes=city().codes).make(), NEAR).toarray() > 0


@pytest.mark.parametrize("time", ["one", "by_time"])
def test_a_reach_over_all_cells_gives_nearly_the_flows_without_one(time):
    """The likelihood is the same, and the descents go until they stand still."""
    free, bound = learned(time=time, count_error=0.0), learned(EVERYWHERE, time=time)
    assert (free.is_sparse, bound.is_sparse) == (False, True)
    assert bound.times == free.times
    for source in (ESTIMATE, USUAL):
        flows = [whole(study.matrix(WHOLE_DAY, source)) for study in (free, bound)]
        assert made.common_part(*flows) > 0.93
        assert flows[1].sum() == pytest.approx(flows[0].sum(), rel=1e-3)
        away = [study.sum() - np.trace(study) for study in flows]
        assert away[1] == pytest.approx(away[0], rel=0.08)
    assert bound.happened.method == "normal"


def test_no_flow_goes_beyond_the_reach():
    study = learned(NEAR)
    for time in study.times:
        for source in study.sources:
            matrix = study.matrix(time, source)
            assert sparse.issparse(matrix)
            assert (matrix.toarray()[~allowed()] == 0).all()
            assert matrix.sum() == pytest.approx(3_000, rel=0.01)
    assert study.transmats.shape == (1, allowed().sum())
    assert study.pattern.nnz == allowed().sum()
    rows = sparse.csr_array((study.transmats[0], study.pattern.indices, study.pattern.indptr))
    np.testing.assert_allclose(rows.sum(axis=1), 1)


def test_what_happened_leads_from_count_to_count():
    """Nobody is lost: at each time of day flows are the people before and after."""
    study = learned(NEAR)
    counts = city().counts.reshape(3, 24, 16)
    at = study.matrix("10:00").toarray()
    np.testing.assert_allclose(at.sum(axis=1), counts[:, 10].mean(axis=0), rtol=0.01, atol=0.3)
    apart = np.abs(at.sum(axis=0) - counts[:, 11].mean(axis=0))
    assert apart.mean() < 0.1 * counts[:, 11].mean()


def test_what_is_chosen_by_the_data():
    study = learned(NEAR, strength="auto", time="auto")
    assert set(study.candidates["learner"]) == {"dense"}
    assert study.candidates["chosen"].sum() == 1
    assert study.held_out["method"].tolist() == ["learned", "persistence", "gravity"]
    errors = study.held_out.set_index("method")["mae"]
    assert errors["learned"] < errors["persistence"]
    assert len(study.transmats) == 24
    *_, again = count_study_steps(table(), study.settings, study.remembered)
    np.testing.assert_array_equal(again.transmats, study.transmats)


def test_days_are_kept_where_they_are_few():
    study = learned(NEAR)
    assert len(study.days) == 3
    one = study.of_days(study.days[:1])
    assert (one.matrix("10:00").toarray()[~allowed()] == 0).all()


def test_what_is_told_of_it():
    study = learned(NEAR)
    told = study.summary()
    assert (told["movers_low"], told["n_resolved"], told["ensemble"]) == (None, None, None)
    assert (told["count_error"], told["doubts"]) == (0.0, [])
    assert not study.has_intervals
    assert "1.2 km" in study.evidence
    assert study.identifiability.within_reach
    assert study.identifiability.n_states == allowed().sum(axis=0).max()
    assert study.identifiability == check_identifiable(table(), NEAR)
    assert tiny.is_one_sentence(study.identifiability.sentence)
    tables, arrays = study.parameter_tables(), study.parameters()
    assert len(tables["transitions"]) == allowed().sum()
    assert arrays["happened"].shape == (24, allowed().sum())
    np.testing.assert_allclose(
        arrays["happened"][10], study.matrix("10:00").toarray()[allowed()], atol=0.005
    )


def test_it_is_kept_and_read_again(tmp_path):
    study = learned(NEAR)
    save_result(study, tmp_path / "kept")
    read = load_result(tmp_path / "kept")
    assert read.settings == study.settings
    np.testing.assert_array_equal(read.transmats, study.transmats)
    assert (read.pattern != study.pattern).nnz == 0
    for name in ("flows", "day_flows"):
        for one, other in ((read, study), (read.happened, study.happened)):
            assert getattr(one, name).equals(getattr(other, name))
    assert read.summary() == study.summary()


@pytest.mark.parametrize(
    "damage",
    [
        {"pattern_indices": lambda a: a[::-1]},
        {"pattern_indptr": lambda a: a[:-1]},
        {"transmats": lambda a: a[:, 1:]},
        {"pattern_indices": lambda a: np.where(a == 1, 3, a)},
    ],
)
def test_a_damaged_pattern_is_told(tmp_path, damage):
    save_result(learned(NEAR), tmp_path / "kept")
    unseal(tmp_path / "kept")
    path = tmp_path / "kept" / "parameters.npz"
    with np.load(path) as arrays:
        kept = dict(arrays)
    for name, change in damage.items():
        kept[name] = change(kept[name])
    np.savez_compressed(path, **kept)
    with refused("result-damaged"):
        load_result(tmp_path / "kept")


@pytest.mark.parametrize("name", sorted(EXPORTS))
def test_every_export_takes_it_or_says_that_it_cannot(name):
    export, study = EXPORTS[name], learned(NEAR)
    if export.available(study):
        assert export.make(ExportInput(study, "10:00", ESTIMATE))


def test_cells_without_places_are_refused():
    bare = made.city_table(city(), grid=False)
    with refused("cells-without-place") as fault:
        list(count_study_steps(bare, replace(QUICK, reach_m=NEAR)))
    assert tiny.is_one_sentence(str(fault.value))


def test_too_few_people_are_refused():
    few = made.city_table(simulate_city(4, 4, days=3, people=20, random_state=2))
    with refused("too-few-people") as fault:
        list(count_study_steps(few, replace(QUICK, reach_m=NEAR)))
    assert tiny.is_one_sentence(str(fault.value))


def test_without_a_prior_what_counts_do_not_fix_is_refused():
    short = replace(
        table(), **{name: getattr(table(), name)[:4] for name in
                    ("times", "sequence", "slot", "counts", "status")}
    )  # fmt: skip
    with refused("flows-not-identified"):
        list(count_study_steps(short, replace(QUICK, prior=0.0, reach_m=NEAR)))


def test_settings_that_do_not_go_with_a_reach():
    with refused("reach-unsuited"):
        CountLearnSettings(reach_m=NEAR, count_error=0.1)
    with refused("option-unused"):
        learn_settings(CountLearnSettings, {"reach_m": NEAR, "replicates": 4})
    assert learn_settings(CountLearnSettings, {"reach_m": NEAR}).worlds == 0
    assert learn_settings(CountLearnSettings, {"reach_m": NEAR, "replicates": 0}).worlds == 0
    settings = CountLearnSettings(reach_m=NEAR)
    assert CountLearnSettings.from_dict(settings.to_dict()) == settings
