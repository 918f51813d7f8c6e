"""Dates with times as Z: levels where X and Y follow days and hours, and what comparing within an hour costs."""
