import streamlit as st

from agg_core.study.people import estimate_megabytes
from ui import cached, counts_learn, panels
from ui.forms import edit
from ui.shell import beside, go_on, need_dataset, page
from ui.state import Run, state
from ui.views import take_finished_run
from ui.workspace import workspace

with page("Learn"):
    st.title("Learn", anchor=False)
    opened = need_dataset()
    if opened.kind == "counts":
        counts_learn.learn_from(opened)
        st.stop()
    now = state()
    st.caption(
        "Here each person is hidden in a group: noise is added, only the counts of groups of M are "
        "kept, and the flows are learned from them. The same is learned from single people, to "
        "compare with."
    )
    settings, progress = beside([4, 5], gap="large")
    before = now.learn
    with settings:
        st.header("Windows", anchor=False)
        now.window = edit(now.window, "window", ["times", "length"], columns=1)
        st.header("What is observed", anchor=False)
        now.learn = edit(now.learn, "observed", ["observed"], columns=1)
        now.learn = edit(
            now.learn, "learn",
            panels.used(now.learn, "misclassify", "sigma_m", "group_size", "seed"),
        )  # fmt: skip
        st.header("How it is learned", anchor=False)
        now.learn = panels.choose_learner(now.learn)
        panels.papers_learner()
        now.learn = edit(
            now.learn,
            "learner",
            panels.used(
                now.learn, "noise", "assumed", "assumed_m", "start", "strength", "prior",
                "calibrate",
            ),
        )  # fmt: skip
        now.learn = edit(now.learn, "learn", ["iterations", "replicates"], columns=1)
        held = cached.trajectories(opened.key).report
        grid = now.grid.make()
        panels.cost(estimate_megabytes(held.individuals, held.rows_kept, grid, now.settings))
        if st.button("Learn the flows", type="primary", icon=":material/play_arrow:", key="start"):
            now.study.run = Run(
                workspace().start(opened.key, now.settings), opened.title, now.settings
            )
        if now.learn != before:
            # What did not go together further up may do so now; a sentence there would be stale.
            st.rerun()
    with progress:
        if now.study.run is None:
            st.info(
                "Choose when the windows begin, how noisy the observations are and how many "
                "people M a group has; then learn. You can leave the page meanwhile.",
                icon=":material/info:",
            )
        else:
            # What is shown at work is taken by the run that shows its end: a warning stays there.
            if not panels.learner(workspace().jobs[now.study.run.key]):
                take_finished_run()
            if now.study.finished == now.study.run:
                go_on("pages/4_Flows.py", "See the flows")
            if now.study.run.settings != now.settings:
                st.caption(
                    "The settings have changed since this run began; learn again to use them."
                )
        panels.words_of_learning(open_at_first=now.study.run is None)
