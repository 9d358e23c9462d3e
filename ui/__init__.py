"""The dashboard's shell: frame, state, caches and forms. Knows Streamlit, knows no arithmetic."""
