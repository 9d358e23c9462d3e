import streamlit as st

from ui import counts_flows, flows
from ui.shell import need_result, page
from ui.state import state
from ui.views import take_finished_counts, take_finished_run

with page("Flows"):
    st.title("Flows", anchor=False)
    take_finished_run()
    take_finished_counts()
    flows.open_address()
    counted = state().counts.finished
    if state().shows_counts and counted is not None:
        counts_flows.show(counted)
        st.stop()
    if state().study.finished is None:
        flows.tell_note(None)
    flows.show(need_result())
