"""Learning flows from counts: settings, what the counts can tell, progress, and how it went."""

from __future__ import annotations

from typing import cast

import numpy as np
import pandas as pd
import streamlit as st

from agg_core.base.durations import duration
from agg_core.base.errors import InputError
from agg_core.counts.identify import Identifiability
from agg_core.counts.mixing import SETTLED
from agg_core.store.jobs import COUNTS, SWEEP
from agg_core.study.counts import CountStudy
from agg_core.study.settings import CountLearnSettings
from ui import cached
from ui.at_work import others
from ui.engines import choose_engine
from ui.forms import edit
from ui.learning import ended_run, start_learning
from ui.named_days import choose_named_days, tell_named_days
from ui.panels import cost, settings_and_work
from ui.shell import plain, tell_fault
from ui.state import Dataset, state
from ui.sweeps import compare, sweep_progress

__all__ = [
    "LEARNERS",
    "METHODS",
    "alike",
    "counts_progress",
    "learn_from",
    "not_settled",
    "warn_of_doubts",
    "who_learned",
]

METHODS = {
    "learned": "Learned flows",
    "persistence": "Nobody moves",
    "gravity": "Gravity model",
}
LEARNERS = {"drawn": "drawing who went where", "dense": "means and covariances of counts"}
STAGES = {
    "choosing": "Choosing strengths",
    "learning": "Learning from all days",
    "validating": "Predicting held-out counts",
    "measuring": "How the counts err",
    "drawing": "Finding what happened",
    "doubting": "Finding how sure the flows are",
}
CANDIDATES = {
    "learner": "Learner",
    **{"prior": "Prior", "hours": "Times of day", "own": "Rows of a time"},
    **{"day_types": "Weekends apart", "apart": "Days apart", "score": "Score", "chosen": "Chosen"},
    **{"panel": "Weight of the panel", "matrix": "Weight of the old matrix"},
}
MOST_ALIKE = 5


def learn_from(opened: Dataset) -> None:
    """The page Learn for counts."""
    st.caption(
        "Nobody was followed here: flows are learned from how the counts of all cells change from "
        "one moment to the next, day after day, and tried on days that were held out."
    )
    settings, work = settings_and_work()
    now = state()
    with settings:
        now.count_learn = _form(now.count_learn)
        known = _what_counts_tell(opened)
        refused = known is not None and not known.identified and _without_prior(now.count_learn)
        can_name = known is None or tell_named_days(opened, now.count_learn)
    with work:
        able = known is not None and not refused and can_name
        if st.button(
            "Learn the flows", type="primary", icon=":material/play_arrow:", key="start",
            disabled=not able,
        ):  # fmt: skip
            start_learning(opened)
        if able:
            cost(
                cached.lasting_of_counts(opened, now.count_learn),
                cached.megabytes_of_counts(opened, now.count_learn),
            )
        if state().counts.run is None:
            st.info(
                "The settings that stand there suit most files: strengths are chosen on held-out "
                "days. You can leave the page while it learns.",
                icon=":material/info:",
            )
        counts_progress()
        others((COUNTS, SWEEP), state().counts.run, state().sweeps.run)
    if able:
        compare(opened)
    else:
        sweep_progress()


def _form(learn: CountLearnSettings) -> CountLearnSettings:
    learn = edit(learn, "counts", ["time", "reach_m"], columns=1)
    with st.expander("More"):
        learn = edit(learn, "counts", ["strength"], columns=1)
        names = ["prior", "count_error", "expansion", "replicates", "threshold", "seed"]
        learn = edit(learn, "counts", [name for name in names if name not in learn.unused])
        if "holidays" not in learn.unused:
            learn = choose_named_days(learn)
        choose_engine()
        return learn


def _without_prior(learn: CountLearnSettings) -> bool:
    return learn.strength == "given" and learn.prior == 0


def _what_counts_tell(opened: Dataset) -> Identifiability | None:
    """Say whether the counts determine the flows, before anything is learned; None: no flows."""
    st.header("What the counts can tell", anchor=False)
    try:
        known = cached.identifiability(opened.key, state().count_learn.reach_m)
    except InputError as fault:
        tell_fault(str(fault))
        return None
    sentence = plain(known.sentence)
    if known.identified:
        st.success(sentence, icon=":material/check_circle:")
    elif _without_prior(state().count_learn):
        st.error(
            f"{sentence} Without a prior nothing else decides, so the learner refuses: take a "
            "prior above 0, or let its strength be chosen.",
            icon=":material/error:",
        )
    else:
        st.warning(sentence, icon=":material/warning:")
    pairs = alike(known, cached.counts(opened.key).cells)
    if pairs:
        st.caption(pairs)
    return known


def alike(known: Identifiability, names: tuple[str, ...]) -> str:
    """Which cells the counts cannot tell apart, the first of them by name."""
    if not known.alike:
        return ""
    named = [
        " and ".join(plain(names[cell]) if cell < len(names) else "outside" for cell in pair)
        for pair in known.alike[:MOST_ALIKE]
    ]
    more = len(known.alike) - len(named)
    rest = f", and {more:,} more pairs" if more else ""
    return f"These counts cannot tell apart: {'; '.join(named)}{rest}."


def counts_progress() -> None:
    """The last job that learns from counts: at work, or how it ended."""
    run = ended_run(
        "counts", preparing="Preparing: pairs of counts …", stages=STAGES,
        settings=state().count_learn,
    )  # fmt: skip
    if run is None:
        return
    found = cached.result(run.key)
    _how_it_went(cast("CountStudy", found), run.title)


def _how_it_went(study: CountStudy, title: str) -> None:
    st.markdown(f"**{plain(title)}**: {who_learned(study)}.")
    st.caption(_facts(study))
    moved = _who_moved(study)
    if moved:
        st.markdown(moved)
    if study.doubt_of_counts:
        st.markdown(plain(study.doubt_of_counts))
    _types_of_days(study)
    warn_of_doubts(study)
    said = not_settled(study)
    if said:
        st.warning(said, icon=":material/warning:")
    st.markdown("**Counts of held-out days, predicted and observed**")
    st.dataframe(
        _held_out(study), hide_index=True, key="counts.held_out", width="stretch",
        column_config={
            name: st.column_config.NumberColumn(format="%.3g") for name in ("MAE", "RMSE")
        },
    )  # fmt: skip
    st.caption(
        "Mean error of a cell's count one step ahead, in people (MAE, RMSE: smaller is better), "
        "and the score of means and covariances together (larger is better)."
    )
    if not _predicts(study):
        st.warning(
            "The learned flows predict held-out counts no better than “nobody moves”: do not "
            "trust single arrows. More days, or larger cells, help.",
            icon=":material/warning:",
        )
    with st.expander("Strengths that were tried"):
        st.dataframe(_tried(study), hide_index=True, key="counts.candidates", width="stretch")
        st.caption(
            "Each strength is a number of people: added to every row of a cell, moving as gravity "
            "says (Prior); tying a time of day to the whole day (Times of day); tying single rows "
            "of a time of day to those (Rows of a time). None: without that layer. Tried in this "
            "order: the prior, times of day, both once more with what was found, types of days "
            "apart from others, rows of a time. A layer more is taken only if its best score on "
            "held-out counts is better by more than a standard error, or by more of them where it "
            "is the best of several types of days; what is taken then lies "
            "between the strengths that are about as good as the best, and has no score of its own."
        )


def _types_of_days(study: CountStudy) -> None:
    """How many days each type has, and what telling it apart gains, where somebody named days."""
    found = study.typed_days
    if found is None or not found.are_named:
        return
    st.markdown("**Types of days**")
    rows = [
        (each.name, len(each.days), each.apart, each.gain, each.gain_error) for each in found.types
    ]
    columns = ["Type", "Days", "Told apart", "Score gained", "Standard error"]
    st.dataframe(
        pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns[-2:], float)),
        hide_index=True, key="counts.types", width="stretch",
        column_config={
            name: st.column_config.NumberColumn(format="%.3g") for name in columns[-2:]
        },
    )  # fmt: skip
    st.caption(
        plain(
            " ".join(
                [
                    "A type is told apart, with times of day of its own, if held-out counts are "
                    "surely foretold better so: by how much the score gains is that on top of the "
                    "types that were taken before.",
                    *found.joined_sentences,
                ]
            )
        )
    )


def warn_of_doubts(study: CountStudy) -> None:
    """A warning for each way in which the counts contradict what was learned."""
    for doubt in study.doubts:
        st.warning(plain(doubt.sentence), icon=":material/warning:")


def _tried(study: CountStudy) -> pd.DataFrame:
    """What was tried, the chosen first of all columns; a layer that was not tried has none."""
    tried = study.candidates.dropna(axis=1, how="all").replace({"learner": LEARNERS})
    if tried["learner"].nunique() == 1:
        tried = tried.drop(columns="learner")
    # Runs that were saved before types had names know whether weekends were apart.
    named = "apart" in tried
    if named or not tried.get("day_types", pd.Series(dtype=bool)).any():
        tried = tried.drop(columns="day_types", errors="ignore")
    if named and not tried["apart"].any():
        tried = tried.drop(columns="apart")
    chosen = tried.pop("chosen")
    tried.insert(0, "chosen", chosen)
    return tried.rename(columns=CANDIDATES)


def who_learned(study: CountStudy) -> str:
    """Who learned, and why."""
    by = LEARNERS.get(study.learner, study.learner)
    return plain(f"learned by {by}, since {study.choice}")


def _who_moved(study: CountStudy) -> str:
    """How many people moved and usually do; nothing of a run that knows the latter alone."""
    if study.happened is None:
        return ""
    told = study.summary()
    sure = ""
    if told["movers_low"] is not None:
        sure = f" (between {told['movers_low']:,.1f} and {told['movers_high']:,.1f})"
    return (
        f"**{told['movers']:,.1f} people moved per {told['step']}**{sure} as it happened on these "
        f"days; {told['usual_movers']:,.1f} usually do."
    )


def not_settled(study: CountStudy) -> str:
    """What to do where draws of what happened have not mixed; nothing where they have."""
    found = study.happened
    if found is None or found.r_hat is None or found.settled:
        return ""
    worth = "" if found.n_eff is None else f", worth {found.n_eff:,.0f} independent draws"
    return (
        f"The draws of what happened have not mixed (R-hat {found.r_hat:.2f}, to be "
        f"{SETTLED:g} at most{worth}): go by what usually happens, or learn with larger cells."
    )


def _held_out(study: CountStudy) -> pd.DataFrame:
    held = study.held_out
    return pd.DataFrame(
        {
            "Predicted by": [METHODS.get(method, method) for method in held["method"]],
            "MAE": held["mae"],
            "RMSE": held["rmse"],
            "Score": ["–" if np.isnan(score) else f"{score:.1f}" for score in held["score"]],
        }
    )


def _predicts(study: CountStudy) -> bool:
    """Whether held-out counts are met better than by leaving everybody where they are."""
    error = study.held_out.set_index("method")["mae"]
    return bool(error["learned"] < error["persistence"])


def _facts(study: CountStudy) -> str:
    facts = [
        f"{study.n_pairs:,} pairs of successive counts of {study.n_days:,} "
        f"{'day' if study.n_days == 1 else 'days'}"
    ]
    if study.n_left_out:
        facts.append(f"{study.n_left_out:,} pairs left out, a count of them not being known")
    if study.n_filled:
        facts.append(f"{study.n_filled:,} suppressed counts filled within their bounds")
    if study.has_outside:
        facts.append("people come and go, so there is one more place: outside")
    return f"{'; '.join(facts)}. It took {duration(study.wall_s)}."
