"""What everything stands on: errors, the clock, options, threads."""
