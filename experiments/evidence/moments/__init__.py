"""How much of a graph `jaxdp discover` finds on continuous and mixed tables, by one noisy moment matrix."""
