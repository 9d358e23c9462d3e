import streamlit as st

from ui import runs
from ui.shell import page
from ui.views import take_finished_run

with page("Runs"):
    st.title("Runs")
    take_finished_run()
    runs.overview()
