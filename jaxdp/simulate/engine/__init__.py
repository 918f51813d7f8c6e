"""Grids of simulations: chunks on the device, record files that survive a crash, their pages."""
