"""Whose session this is: everything that people bring or learn belongs to an owner."""

from __future__ import annotations

import hashlib
import secrets

import streamlit as st

__all__ = ["owner"]

KEY = "owner"


def owner() -> str:
    """Id of whoever uses this session, 32 hexadecimal digits.

    It is made of the issuer and the subject of a person who has logged in, so that all sessions of
    that person share it; else it is random, and of this session alone.
    """
    if st.user.get("is_logged_in"):
        who = f"{st.user.get('iss', '')} {st.user['sub']}"
        return hashlib.sha256(who.encode()).hexdigest()[:32]
    if KEY not in st.session_state:
        st.session_state[KEY] = secrets.token_hex(16)
    return str(st.session_state[KEY])
