import streamlit as st

from ui import runs
from ui.shell import page
from ui.views import take_finished_run

with page("Runs"):
    st.title("Runs", anchor=False)
    st.caption(
        "Everything that was learned, newest first: open it again, compare two, or send the "
        "address of one."
    )
    take_finished_run()
    runs.overview()
