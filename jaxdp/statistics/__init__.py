"""Non-private statistics: pure functions of arrays. No epsilon, no noise."""
