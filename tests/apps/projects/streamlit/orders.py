"""A Streamlit app that writes what it has taken to a file, with each run."""

import datetime
import json
import os
from pathlib import Path

import streamlit as st

st.title("Orders")
region = st.selectbox("Region", ["North", "East", "South", "West"])
share = st.slider("Share", 0, 100, 25)
due = st.date_input("Due", datetime.date(2026, 1, 15))
tags = st.multiselect("Tags", ["urgent", "vip", "gift", "late"])
name = st.text_input("Customer")
note = st.text_area("Note")
rush = st.checkbox("Rush")
speed = st.radio("Delivery", ["Post", "Courier"])
st.download_button("Download report", f"region,share\n{region},{share}\n", "report.csv", "text/csv")
sent = st.file_uploader("Attachment")
state = {
    "region": region,
    "share": share,
    "due": due.isoformat(),
    "tags": tags,
    "customer": name,
    "note": note,
    "rush": rush,
    "delivery": speed,
    "attachment": sent and [sent.name, sent.getvalue().decode()],
}
st.write(f"{region}: {share} % until {due}")
target = Path(os.environ["ORDERS_STATE"])
draft = target.with_suffix(".new")
draft.write_text(json.dumps(state))
draft.replace(target)
