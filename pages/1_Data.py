import streamlit as st

from agg_core.made.samples import COUNT_SAMPLE, GATE_SAMPLE, SAMPLES
from agg_core.plotting.maps import fixes_deck
from ui import cached, counts_data, gates_data, reading
from ui.learning import ways_on
from ui.loading import (
    open_count_sample,
    open_gate_sample,
    open_sample,
    take_upload,
    take_uploads,
)
from ui.other_kinds import goes_with_others
from ui.outlines import outline_choice
from ui.scene import map_size_px, scene
from ui.server_files import server_files
from ui.shell import beside, page, plain
from ui.state import state
from ui.trips import counted_trips

with page("Data"):
    st.title("Data", anchor=False)
    st.caption(
        "Open what the flows are learned from. Trajectories: for each person, where they were and "
        "when; one such place and time is called a fix. Or counts: how many people were in each "
        "cell at each time, nobody told apart. Or entries and exits: how many passed the gates of "
        "each station."
    )
    left, right = beside([3, 2], gap="large")
    with left:
        st.file_uploader(
            "Your trajectories, counts or entries and exits: a table, tracks or a map file, packed "
            "or not",
            key="upload", on_change=take_upload,
            help="CSV, Excel, Parquet, GPX, KML, GeoJSON, JSON, GeoPackage, Shapefile, Google "
            "timeline, or a zip of such files: a person's id, a time and a place in each row; or a "
            "time, a cell and a count, as operators and sensors publish them; or a time, a "
            "station, entries and exits. What a file is and what its columns hold is found out. It "
            "stays in this session, until the page is loaded anew.",
        )  # fmt: skip
        with st.expander("Several files"):
            st.file_uploader(
                "Files of one kind, read together", key="uploads", on_change=take_uploads,
                accept_multiple_files=True,
                help="A file a day, or a file a person. A table of stations may go with trips that "
                "name places by their codes, or one of towers with records that name towers. For "
                "a folder, pack it as zip.",
            )  # fmt: skip
        server_files()
    with right:
        st.markdown("Or a made-up city")
        for key, about in SAMPLES.items():
            with st.container(horizontal=True):
                st.button(
                    about.title, icon=":material/location_city:", key=f"data.{key}",
                    on_click=open_sample, args=(key,), help=about.description,
                )  # fmt: skip
                with st.popover("Make a larger one", icon=":material/group_add:"):
                    n_people = st.number_input(
                        "People", 1000, 100_000, about.full_people, step=1000,
                        key=f"data.{key}.people",
                        help="The paper's experiment has 49,538.",
                    )  # fmt: skip
                    st.button(
                        "Make", key=f"data.{key}.make", on_click=open_sample, args=(key, n_people)
                    )
        st.button(
            COUNT_SAMPLE, icon=":material/tag:", key="data.counts", on_click=open_count_sample,
            help="A week of people per cell and hour, laid out as Mobile Spatial Statistics "
            "are, with counts below 10 left out. Nobody in it is real, and nobody was followed.",
        )  # fmt: skip
        st.button(
            GATE_SAMPLE, icon=":material/train:", key="data.gates", on_click=open_gate_sample,
            help="Three weeks of people who enter and leave ten stations of a made-up railway, "
            "hour by hour. Nobody in it is real, and there are no such stations.",
        )  # fmt: skip
    reading.watch()
    reading.fault()
    goes_with_others()
    reading.reading_choices()
    gates_data.files_beside()
    counted_trips()
    opened = state().dataset
    if opened is None:
        st.info("Nothing is open yet: upload a file or open the sample.", icon=":material/info:")
        st.stop()
    if opened.kind == "counts":
        counts_data.data_of(opened)
        st.stop()
    if opened.kind == "gates":
        gates_data.data_of(opened)
        st.stop()
    data = cached.trajectories(opened.key)
    st.header(f"What is in {plain(opened.title)}", anchor=False)
    ways_on(opened)
    reading.report(data.report)
    outline_choice(data.report.bbox)
    size = map_size_px(data.report.bbox)
    st.pydeck_chart(
        fixes_deck(
            data.table["lon"].to_numpy(), data.table["lat"].to_numpy(), data.report.bbox,
            scene=scene(data.report.bbox, size),
        ),
        height=size[1], key="data.map", alt="A sample of the fixes on a map",
    )  # fmt: skip
    st.caption("Each point is a fix; of more than 5,000 a random sample is drawn.")
