"""Tests built on other tests: votes of blocks, tests of tests."""
