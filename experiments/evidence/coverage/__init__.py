"""Coverage of the intervals of effect sizes."""
