"""Home: what this is, and the sample city in one click."""

import streamlit as st

from agg_core.samples import SAMPLES
from ui.loading import open_sample
from ui.shell import page

with page("Home"):
    words, picture = st.columns([2, 3], gap="large", vertical_alignment="center")
    with words:
        st.title("Population flows")
        st.markdown(
            "See how people move through a city, and what can still be known of it when only "
            "**counts of groups** are seen, never a single person.\n\n"
            "Trajectories are laid on a grid, made as inaccurate as real sensors, and put into "
            "groups of M people of whom only the counts are kept. A hidden Markov model learns "
            "the flows from these counts. Beside them you see what single people would have told."
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
    with picture:
        st.image("docs/flows.png", caption="Flows at 8:00, learned from groups of 20 people.")
