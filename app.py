"""Home: what this is, and the sample city in one click."""

import streamlit as st

from agg_core.base.shipped import app_folder
from agg_core.made.samples import SAMPLES
from ui.loading import open_sample
from ui.shell import beside, page, theme

PICTURES = {
    "light": app_folder() / "docs/flows.png",
    "dark": app_folder() / "docs/flows-dark.png",
}

with page("Home"):
    words, picture = beside([2, 3], gap="large", align="center")
    with words:
        st.title("Population flows", anchor=False)
        st.markdown(
            "See how people move through a city, and what can still be known of it when only "
            "**counts of groups** are seen, never a single person.\n\n"
            "Trajectories are laid on a grid, made as inaccurate as real sensors, and put into "
            "groups of M people of whom only the counts are kept. A hidden Markov model learns "
            "the flows from these counts. Beside them you see what single people would have told."
            "\n\nCounts alone are enough, too: a table of how many people were in each cell at "
            "each time, as operators and sensors publish it, becomes flows without trajectories."
        )
        for key, about in SAMPLES.items():
            if st.button(
                f"Open the sample: {about.title}", type="primary", icon=":material/location_city:",
                key=f"home.{key}",
            ):  # fmt: skip
                open_sample(key)
                st.switch_page("pages/2_Grid.py")
            st.caption(about.description)
        st.page_link("pages/1_Data.py", label="Use my own file", icon=":material/upload_file:")
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
