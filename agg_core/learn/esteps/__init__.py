"""E-steps of one signature; `agg_core.learn.table` says which learner has which."""
