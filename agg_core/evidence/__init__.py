"""Evidence for learned flows: sums that people check, what they are checked by, and how sure."""
