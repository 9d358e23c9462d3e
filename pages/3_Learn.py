import streamlit as st

from agg_core.store.jobs import STUDY, SWEEP
from ui import cached, counts_learn, gates_learn, panels, sweeps
from ui.at_work import follow_address, others
from ui.engines import choose_engine
from ui.forms import edit
from ui.learn_page import need_data_or_work
from ui.learning import megabytes, people_progress, start_learning
from ui.shell import page
from ui.state import state

with page("Learn"):
    st.title("Learn", anchor=False)
    follow_address()
    opened = need_data_or_work()
    if opened.kind == "counts":
        counts_learn.learn_from(opened)
        st.stop()
    if opened.kind == "gates":
        gates_learn.learn_from(opened)
        st.stop()
    now = state()
    st.caption(
        "Here each person is hidden in a group: noise is added, only the counts of groups of M are "
        "kept, and the flows are learned from them. The same is learned from single people, to "
        "compare with."
    )
    settings, work = panels.settings_and_work()
    before = now.learn
    with settings:
        now.window = edit(now.window, "window", ["times"], columns=1)
        now.learn = edit(
            now.learn, "learn", panels.used(now.learn, "group_size", "misclassify"), columns=1
        )
        with st.expander("More"):
            st.header("What is observed", anchor=False)
            now.window = edit(now.window, "window", ["length"], columns=1)
            now.learn = edit(now.learn, "observed", ["observed"], columns=1)
            now.learn = edit(now.learn, "learn", panels.used(now.learn, "sigma_m", "seed"))
            st.header("How it is learned", anchor=False)
            now.learn = edit(now.learn, "learn", ["reach_m"], columns=1)
            now.learn = panels.choose_learner(now.learn)
            now.learn = edit(
                now.learn,
                "learner",
                panels.used(
                    now.learn, "noise", "assumed", "assumed_m", "start", "strength", "prior",
                    "calibrate",
                ),
            )  # fmt: skip
            now.learn = edit(now.learn, "learn", ["iterations", "replicates"], columns=1)
            choose_engine()
        panels.papers_learner()
    with work:
        if st.button("Learn the flows", type="primary", icon=":material/play_arrow:", key="start"):
            start_learning(opened)
        panels.cost(cached.lasting_of_people(opened, now.settings), megabytes(opened))
        if now.study.run is None:
            st.info(
                "What stands there suits most data. Choose the times of day, how many people M a "
                "group has and how noisy the counts are; then learn. You can leave the page "
                "meanwhile.",
                icon=":material/info:",
            )
        people_progress()
        if now.study.run is not None and now.study.run.settings != now.settings:
            st.caption("The settings have changed since this run began; learn again to use them.")
        others((STUDY, SWEEP), now.study.run, now.sweeps.run)
        panels.words_of_learning(open_at_first=now.study.run is None)
    sweeps.compare(opened)
    if now.learn != before:
        # What did not go together further up may do so now; a sentence there would be stale.
        st.rerun()
