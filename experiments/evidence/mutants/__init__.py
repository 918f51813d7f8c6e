"""Every number that privacy rests on is changed by a tenth, and some test must see it. See `scripts/mutate`."""
