"""Public parameters by gradient, on simulated or public data only; private data never enter here."""

from jaxdp.tune.subsample import noise_objective, signal_to_noise, subsample_size, subsample_size_closed_form

__all__ = ["noise_objective", "signal_to_noise", "subsample_size", "subsample_size_closed_form"]
