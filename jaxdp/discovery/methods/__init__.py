"""Searches, one per file."""
