"""Exact noise on an integer lattice, for releases."""


def _refuse(law: str):
    raise NotImplementedError(f"exact {law} noise is not available yet; use a simulation key.")


def laplace(key, value, sensitivity, epsilon):
    _refuse("Laplace")


def geometric(key, value, sensitivity, epsilon):
    _refuse("geometric")


def gaussian(key, value, sensitivity, rho):
    _refuse("Gaussian")


def argmax_exponential(key, scores, sensitivity, epsilon):
    _refuse("noisy-max")


def argmax_gumbel(key, scores, sensitivity, epsilon):
    _refuse("Gumbel")


def rank_at_most(key, reference, others, scale_numerator, epsilon, count):
    _refuse("rank")
