"""Audits: attacks on declared sensitivities, lower bounds on epsilon, record and replay.

Everything here runs on made-up data. An audit can refute a privacy claim; it can't prove one.
"""

from jaxdp.audit.catalogue import Audit, attacked, audit, subjects
from jaxdp.audit.contract import Contract, Finding, check_contract
from jaxdp.audit.epsilon import Bound, events_bound, lower_bound, outcomes_bound
from jaxdp.audit.record import Difference, replay
from jaxdp.audit.sensitivity import Attack, falsify
from jaxdp.published.true_losses import algorithm_2_loss, algorithm_3_loss, noisy_rank_loss

__all__ = [
    "Attack",
    "Audit",
    "Bound",
    "Contract",
    "Difference",
    "Finding",
    "algorithm_2_loss",
    "algorithm_3_loss",
    "attacked",
    "audit",
    "check_contract",
    "events_bound",
    "falsify",
    "lower_bound",
    "noisy_rank_loss",
    "outcomes_bound",
    "replay",
    "subjects",
]
