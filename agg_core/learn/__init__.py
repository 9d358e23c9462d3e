"""From aggregates to parameters: the learners."""
