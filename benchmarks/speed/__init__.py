"""How fast the learners are, beside peers and our own code of an earlier commit."""
