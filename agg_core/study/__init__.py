"""Settings, and the way from data to a result."""
