"""Tests of X independent of Y given Z for numbers, one per file."""
