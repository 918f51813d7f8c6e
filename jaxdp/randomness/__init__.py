"""Keys, the streams of random words they open, and what makes a release key serve once."""
