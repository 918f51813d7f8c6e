"""Does one Z that is a time, or is heaped, keep its level, and what does that cost? See `__main__`."""
