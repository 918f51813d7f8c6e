"""Score tests of many variants beside counts-only tests."""
