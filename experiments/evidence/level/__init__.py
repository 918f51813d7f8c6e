"""Rejection rates of true nulls where the level rests on how Z is cut. See `__main__`."""
