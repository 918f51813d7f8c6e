"""Private independence tests, one per file."""
