import streamlit as st

from ui import evidence
from ui.learning import need_flows
from ui.shell import page
from ui.views import take_finished_run

with page("Evidence"):
    st.title("Evidence", anchor=False)
    take_finished_run()
    evidence.show(need_flows())
