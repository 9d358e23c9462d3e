"""What a file does not say by itself: columns, times, places."""
