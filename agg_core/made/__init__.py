"""Made-up people and counts, and the data that ships."""
