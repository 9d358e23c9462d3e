"""Time and memory of the product beside that of others, and its first seconds."""
