"""The tables that data and flows are held in."""
