"""Tests of X independent of Y, one per file."""
