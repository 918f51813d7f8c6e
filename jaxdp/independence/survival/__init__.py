"""Tests of times to an event, one per file."""
