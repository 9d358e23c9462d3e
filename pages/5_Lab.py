import streamlit as st

from ui import lab
from ui.shell import page

with page("Lab"):
    st.title("Lab")
    if lab.choose_part() == lab.EXPERIMENTS_PART:
        lab.experiments()
    else:
        lab.teaching()
