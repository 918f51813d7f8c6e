"""Private discovery on random networks of 12 to 56 coded columns."""
