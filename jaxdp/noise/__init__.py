"""Noise laws: sources of noise (`jaxdp.noise.source`), and what they draw."""
