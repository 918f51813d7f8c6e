"""Tables beyond memory: speed, peak memory, equality of tests whose sums are taken in chunks (docs/large_data.md)."""
