"""Tests on ranks within strata, one per file."""
