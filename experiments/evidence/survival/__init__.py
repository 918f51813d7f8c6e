"""Level, power and coverage of tests of times to an event."""
