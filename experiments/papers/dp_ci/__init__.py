"""Figures of the private conditional independence paper (PrivGCM, PrivCRT), with PartitionGCM beside them."""
