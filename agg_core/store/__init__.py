"""What is kept on disk: results, runs, jobs."""
