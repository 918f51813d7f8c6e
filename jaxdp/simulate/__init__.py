"""Simulated designs, (key, n, ...) -> Data, and rejection rates over replicates."""

from jaxdp.simulate.confounder import SineLaw, heteroscedastic_confounder, sine_confounder

__all__ = ["SineLaw", "heteroscedastic_confounder", "sine_confounder"]
