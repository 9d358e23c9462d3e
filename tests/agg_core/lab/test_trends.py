import numpy as np
import pandas as pd
import pytest

from agg_core.lab.experiments import EXPERIMENTS
from agg_core.lab.trends import LEARNER_LABELS, RUN_COLUMNS, final_table, setting_text, trends_of

COLUMNS = [*RUN_COLUMNS, "iteration", "wall_s", "delta_nll", "free_energy"]


def table_of(*curves):
    """Curves as (changes to the columns, ΔNLL by iteration, seconds by iteration or None)."""
    rows = []
    for change, values, *seconds in curves:
        run_ = {
            "n_states": 3, "group_size": 1, "n_individuals": 1000, "length": 5, "learner": "cfb",
            "seed": 0,
        } | change  # fmt: skip
        clock = seconds[0] if seconds else range(len(values))
        for i, (value, wall_s) in enumerate(zip(values, clock, strict=True)):
            rows.append(run_ | {"iteration": i, "wall_s": float(wall_s), "delta_nll": value})
    return pd.DataFrame(rows).assign(free_energy=0.0)[COLUMNS]


def ends(column, by_seed):
    """Curves that end at given values: seed by seed a dict from the value of a column."""
    return [
        ({column: value, "seed": seed}, [9.0, end])
        for seed, of_value in enumerate(by_seed)
        for value, end in of_value.items()
    ]


def test_larger_groups_end_higher():
    best, rising = trends_of(
        "fig3",
        table_of(
            *ends("group_size", [{1: 0.1, 10: 0.2, 100: 0.4}, {1: 0.3, 10: 0.2, 100: 0.4}]),
        ),
    )
    # Means: 0.2, 0.2, 0.4.
    assert best.claim == "d = 3: M = 1 ends lowest."
    assert not best.holds
    assert (best.n_holding, best.n_seeds) == (1, 2)
    assert not rising.holds
    assert best.sentence == (
        "Does not hold on average; it does in 1 of 2 seeds: curves end at 0.2 at M = 1, 0.2 at "
        "M = 10 and 0.4 at M = 100 nats per person."
    )
    best, rising = trends_of(
        "fig4", table_of(*ends("group_size", [{1: 0.1, 10: 0.5, 100: 0.4}, {1: 0, 10: 0, 100: 1}]))
    )
    # Means: 0.05, 0.25, 0.7; neither seed rises throughout.
    assert best.holds
    assert best.n_holding == 1
    assert rising.holds
    assert rising.n_holding == 0
    assert rising.sentence.startswith("Holds on average and in 0 of 2 seeds: curves end at 0.05 ")


def test_each_number_of_states_is_judged_apart():
    curves = [
        ({"n_states": d, "group_size": m}, [1.0, end])
        for d, m, end in ((3, 1, 0.1), (3, 10, 0.2), (5, 1, 0.2), (5, 10, 0.1))
    ]
    trends = trends_of("fig3", table_of(*curves))
    assert [(t.claim[:5], t.holds) for t in trends] == [
        ("d = 3", True), ("d = 3", True), ("d = 5", False), ("d = 5", False)
    ]  # fmt: skip


def test_what_varies_besides_is_named():
    curves = [
        ({"n_individuals": n, "group_size": m}, [1.0, m / n]) for n in (500, 1000) for m in (1, 10)
    ]
    assert [t.claim for t in trends_of("fig3", table_of(*curves))[::2]] == [
        "N = 500: M = 1 ends lowest.", "N = 1,000: M = 1 ends lowest."
    ]  # fmt: skip


def test_nothing_to_compare_no_trend():
    alone = table_of(({}, [1.0, 0.5]))
    for name in EXPERIMENTS:
        assert trends_of(name, alone) == ()


def test_longer_sequences_end_lower():
    curves = [
        ({"length": t, "group_size": m}, [1.0, end])
        for t, m, end in ((5, 1, 0.4), (10, 1, 0.3), (5, 100, 0.5), (10, 100, 0.6))
    ]
    trends = {t.claim: t for t in trends_of("fig5", table_of(*curves))}
    assert trends["M = 1: the longer the sequences, the lower the end."].holds
    assert not trends["M = 100: the longer the sequences, the lower the end."].holds
    # Per step 0.1 and 0.06.
    per_step = trends["M = 100: the longer the sequences, the lower the end per step."]
    assert per_step.holds
    assert "0.1 at T = 5 and 0.06 at T = 10 nats per person and step" in per_step.sentence
    assert trends["T = 5: the larger the groups, the higher the end."].holds
    assert len(trends) == 6


def test_few_people_are_learned_by_heart():
    curves = [
        ({"n_individuals": n, "seed": s}, [9.0, low, last])
        for n, s, low, last in (
            (100, 0, 0.5, 0.9), (100, 1, 0.5, 0.505), (400, 0, 0.4, 0.4), (400, 1, 0.4, 0.4),
            (5000, 0, 0.1, 0.1), (5000, 1, 0.1, 0.2),
        )
    ]  # fmt: skip
    falling, few, middling = trends_of("fig6", table_of(*curves))
    assert falling.holds
    assert falling.n_holding == 2
    assert "N = 100 the curve turns up" in few.claim
    # The rises are 0.4 and 0.005, on average 0.2; the second is below the margin.
    assert few.holds
    assert (few.n_holding, few.n_seeds) == (1, 2)
    assert "by 0.203 at N = 100, 0 at N = 400 and 0.05 at N = 5,000" in few.sentence
    assert "N = 400" in middling.claim
    assert not middling.holds


def test_an_infinite_end_is_a_turn_for_the_worse_and_never_a_fault():
    curves = [
        ({"n_individuals": 100}, [np.inf, np.inf]),
        ({"n_individuals": 400}, [1.0, np.inf]),
        ({"n_individuals": 900}, [1.0, 0.5]),
    ]
    falling, nowhere, up = trends_of("fig6", table_of(*curves))
    assert not falling.holds
    assert not nowhere.holds
    assert up.holds


def test_cfb_against_the_others_and_the_clock():
    curves = [
        ({"learner": "cfb"}, [1.0, 0.4, 0.2], [0, 1, 2]),
        ({"learner": "nlbp"}, [1.0, 0.4, 0.3], [0, 3, 6]),
        ({"learner": "prox"}, [1.0, 0.8, 0.3], [0, 0.5, 1.5]),
        ({"learner": "nlbp_states"}, [1.0, 0.4, 0.1], [0, 3, 6]),
        ({"learner": "least_squares"}, [1.0, 0.0, 0.0], [0, 0, 0]),
    ]
    low, soon, low_states, soon_states = trends_of("fig7", table_of(*curves))
    assert low.claim == "d = 3: CFB ends below NLBP and Prox (counts of symbols)."
    assert low.holds
    assert "0.2 (CFB), 0.3 (NLBP) and 0.3 (Prox)" in low.sentence
    # Both come down to 0.3: CFB after 2 s, NLBP after 6 s, but Prox after 1.5 s.
    assert not soon.holds
    assert "2 s against 6 s (NLBP) and 2 s against 1.5 s (Prox)" in soon.sentence
    assert "Poisson counts of states" in low_states.claim
    assert not low_states.holds
    # Both come down to 0.2: CFB after 2 s, NLBP after 6 s.
    assert soon_states.holds


def test_without_cfb_or_rivals_there_is_no_race():
    curves = [({"learner": name}, [1.0, 0.5]) for name in ("nlbp", "prox")]
    assert trends_of("fig7", table_of(*curves)) == ()
    curves = [({"learner": name}, [1.0, 0.5]) for name in ("cfb", "least_squares")]
    assert trends_of("fig7", table_of(*curves)) == ()


# --------------------------------------------------------------------- beyond the paper's learner


def by_learner(ends_of):
    """Curves that end at given values: learner to M to the values of the seeds."""
    return [
        ({"learner": learner, "group_size": m, "seed": seed}, [9.0, end])
        for learner, by_size in ends_of.items()
        for m, values in by_size.items()
        for seed, end in enumerate(values)
    ]


def test_each_learner_is_judged_by_itself_and_named():
    curves = by_learner(
        {"cfb": {1: [0.1], 10: [0.2]}, "sampling": {1: [0.1], 10: [0.05]}},
    )
    *first, beside = trends_of("fig3", table_of(*curves))
    assert [(t.claim, t.holds) for t in first] == [
        ("CFB: M = 1 ends lowest.", True),
        ("CFB: the larger the groups, the higher the end.", True),
        ("MCMC over individual assignments: M = 1 ends lowest.", False),
        ("MCMC over individual assignments: the larger the groups, the higher the end.", False),
    ]
    assert beside.claim == "d = 3: MCMC over individual assignments ends below CFB at M = 10."
    assert beside.holds
    assert [trend.ours for trend in (*first, beside)] == [False] * 4 + [True]
    assert "curves end at 0.05 against 0.2 at M = 10 nats per person" in beside.sentence


def test_beside_cfb_every_group_counts_and_single_people_do_not():
    curves = by_learner({
        "cfb": {1: [0.1, 0.1], 10: [0.3, 0.3], 100: [0.6, 0.6]},
        # Worse at M = 1; better in groups, but for one seed at M = 100.
        "cavity": {1: [0.2, 0.2], 10: [0.1, 0.1], 100: [0.3, 0.7]},
        "auto": {1: [0.1, 0.1], 10: [0.1, 0.1], 100: [0.7, 0.7]},
    })  # fmt: skip
    loss, cavity, best = trends_of("groups", table_of(*curves))
    assert loss.claim == "d = 3: CFB ends higher at M = 100 than at M = 1."
    assert (loss.holds, loss.n_holding, loss.ours) == (True, 2, True)
    assert cavity.claim == "d = 3: Cavity CFB ends below CFB at M = 10 and 100."
    assert (cavity.holds, cavity.n_holding, cavity.n_seeds) == (True, 1, 2)
    assert "0.1 against 0.3 at M = 10 and 0.5 against 0.6 at M = 100" in cavity.sentence
    assert best.claim.startswith("d = 3: Best for the data ends below CFB")
    assert not best.holds


def test_an_infinite_end_is_not_below_another():
    curves = by_learner({"cfb": {10: [np.inf]}, "cavity": {10: [np.inf]}})
    (beside,) = trends_of("fig3", table_of(*curves))
    assert not beside.holds


def test_without_cfb_nothing_is_beside_it():
    curves = by_learner({"cavity": {10: [0.1]}, "sampling": {10: [0.2]}})
    assert trends_of("groups", table_of(*curves)) == ()


def test_the_final_table_is_mean_and_deviation_over_seeds():
    curves = [({"seed": 0}, [9.0, 0.1], [0, 2]), ({"seed": 1}, [9.0, 0.3], [0, 4])]
    (row,) = final_table(table_of(*curves)).to_dict("records")
    assert row["delta_nll"] == pytest.approx(0.2)
    assert row["sd"] == pytest.approx(np.sqrt(0.02))
    assert (row["wall_s"], row["n_seeds"]) == (3, 2)


def test_values_are_named_as_a_person_reads_them():
    assert setting_text("n_individuals", 5000) == "N = 5,000"
    assert setting_text("learner", "cavity_calibrated") == "Cavity CFB, calibrated"
    assert len(set(LEARNER_LABELS.values())) == len(LEARNER_LABELS)
