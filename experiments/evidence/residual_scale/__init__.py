"""Which public guess of the residual sd should PartitionGCM use on schema data? See `__main__`."""
