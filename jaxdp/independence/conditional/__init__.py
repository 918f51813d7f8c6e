"""Tests of X independent of Y given Z, one per file."""
