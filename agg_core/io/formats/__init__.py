"""One module for each format of a file."""
