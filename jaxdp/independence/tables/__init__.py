"""Tests of coded columns by their tables, one per file."""
