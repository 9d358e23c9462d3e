"""Population flows learned from aggregate observations of individuals who follow one HMM."""
