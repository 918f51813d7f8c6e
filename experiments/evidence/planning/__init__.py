"""Answers of the planner, confirmed by the call that people use."""
