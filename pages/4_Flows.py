import streamlit as st

from ui import flows
from ui.shell import need_result, page
from ui.state import state
from ui.views import take_finished_run

with page("Flows"):
    st.title("Flows", anchor=False)
    take_finished_run()
    flows.open_address()
    if state().study.finished is None:
        flows.tell_note(None)
    flows.show(need_result())
