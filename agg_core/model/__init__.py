"""The hidden Markov model, its emissions, and the aggregates that it is learned from."""
