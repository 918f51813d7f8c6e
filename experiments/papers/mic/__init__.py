"""Tables 1 to 3 and figures 2 to 5 of the private MIC paper (004), the tuning of B, and heavy-tailed ranges."""
