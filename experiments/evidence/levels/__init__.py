"""How often private bounds are usable."""
