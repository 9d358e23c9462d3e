"""Home: what this is, and the sample city in one click."""

import streamlit as st

from agg_core.base.shipped import app_folder
from agg_core.made.samples import SAMPLES
from agg_core.store.shipped_runs import SHIPPED_RUNS
from ui.served import being_served, server
from ui.shell import beside, page, theme
from ui.shipped_run import open_shipped

PICTURES = {
    "light": app_folder() / "docs/flows.png",
    "dark": app_folder() / "docs/flows-dark.png",
}

COUNTED = (
    "A week of people per cell and hour, laid out as operators publish them. Nobody was followed: "
    "its flows were learned from these counts alone."
)


def home() -> None:
    """Draw the page."""
    words, picture = beside([2, 3], gap="large", align="center")
    with words:
        st.title("Population flows", anchor=False)
        st.markdown(
            "See how people move through a city, and what can still be known of it when only "
            "**counts of groups** are seen, never a single person."
        )
        for key, run in SHIPPED_RUNS.items():
            about = SAMPLES.get(run.sample or "")
            label = f"Open the sample: {about.title}" if about else "Counts only: a made-up city"
            if st.button(
                label, type="primary" if about else "secondary", key=f"home.{key}",
                icon=":material/location_city:" if about else ":material/tag:",
            ):  # fmt: skip
                open_shipped(key)
            st.caption(about.description if about else COUNTED)
        st.page_link("pages/1_Data.py", label="Use my own file", icon=":material/upload_file:")
        st.markdown(
            "Trajectories are laid on a grid, made as inaccurate as real sensors, and put into "
            "groups of M people of whom only the counts are kept. A hidden Markov model learns "
            "the flows from these counts. Beside them you see what single people would have told."
            "\n\nCounts alone are enough, too: a table of how many people were in each cell at "
            "each time, as operators and sensors publish it, becomes flows without trajectories."
        )
        st.caption(
            "The steps stand at the top of every page: Data, Grid, Learn, Flows. The Lab shows a "
            "class what aggregation does; Runs keeps what was learned."
        )
    with picture:
        light, shown = PICTURES["light"], PICTURES[theme().name]
        st.image(
            str(shown if shown.exists() else light),
            caption="People who move at 8:00, one arrow from cell to cell: on the left as "
            "learned from groups of 20 people, on the right from single people.",
            alt="Two maps of Greater Tokyo with arrows towards its centre, much alike",
        )


# Streamlit imports this file for the server that it names, and runs it for every session.
if being_served():
    with page("Home"):
        home()
else:
    app = st.App(**server(__file__))
