"""The one place that charges an account: require, rehearse, charge, and only then release.

Every query, search and plug-in pays here, so that what fails on blank records of the same shapes fails before it costs
anything, and what fails after the charge says that the charge stands. No other file of the package charges, apart from
the ledger itself; a test searches for it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

from jaxdp.randomness import keys

PAID_AGAIN = "asking again is charged again"  # what follows a failure, unless the account has `after_failure`

STANDS = "The charge stands"


@runtime_checkable
class Account(Protocol):
    """What a release is paid from: `jaxdp.Ledger`, or your own keeper of a budget."""

    def require(self, cost: Any) -> None:
        """Raises if the cost is not affordable; writes nothing."""

    def charge(self, method: str, cost: Any, key: Any, /) -> Any:
        """Writes the cost down durably, or raises."""


def require_account(account: Any) -> None:
    """Raises TypeError for what cannot be charged, such as the path of a ledger."""
    if not isinstance(account, Account):
        raise TypeError(
            f"ledger must be what can be charged, such as jaxdp.Ledger.open(path), got {type(account).__name__}."
        )


@contextlib.contextmanager
def paid(
    account: Account | None, method: str, cost: Any, key: Any, *, mode: str, rehearse: Callable[[], Any] | None
) -> Iterator[None]:
    """The context of a release: entered once its cost is charged, and left with the release made.

    account: None where nothing is charged. rehearse: the whole release and what follows it on blank records, thrown
    away; it comes after the account was found to afford the cost and before the charge. None for what was rehearsed.
    Errors: those of the account and of the rehearsal, before the charge. What is raised in the context keeps its type
    and carries a note that names the charge.
    """
    if account is None:
        yield
        return
    require_account(account)
    if mode == keys.RELEASE:
        account.require(cost)
        if rehearse is not None:
            rehearse()
    account.charge(method, cost, key)
    try:
        yield
    except BaseException as error:
        _explain(error, account, method, cost)
        raise


@contextlib.contextmanager
def explaining(account: Account | None) -> Iterator[Account | None]:
    """The account, such that whatever fails in the context after a charge carries a note that names the charge."""
    if account is None:
        yield None
        return
    require_account(account)
    remembering = _Remembering(account)
    try:
        yield remembering
    except BaseException as error:
        for method, cost in remembering.charged:
            _explain(error, account, method, cost)
        raise


def once(ledger: Any, method: str, cost: Any, key: Any, txid: str | None) -> None:
    """Charges a ledger under the name of a transaction, for all runs of one search; None: under a new one."""
    ledger.charge(method, cost, key, txid=txid)


class Several:
    """Accounts that are charged together: none is charged unless all of them can afford the cost."""

    def __init__(self, *accounts: Account):
        self.accounts = accounts

    def require(self, cost: Any) -> None:
        """As of an account."""
        for account in self.accounts:
            account.require(cost)

    def charge(self, method: str, cost: Any, key: Any) -> None:
        """As of an account."""
        for account in self.accounts:
            account.charge(method, cost, key)


class Claimed:
    """An account that is charged a claim, such as (epsilon, delta), in place of the rho-zCDP of a release."""

    def __init__(self, account: Account, claim: Any):
        self._account, self._claim, self.after_failure = account, claim, _after_failure(account)

    def require(self, cost: Any) -> None:
        """As of an account, for the claim."""
        del cost
        self._account.require(self._claim)

    def charge(self, method: str, cost: Any, key: Any) -> None:
        """As of an account, for the claim."""
        del cost
        self._account.charge(method, self._claim, key)


def claiming(account: Account | None, claim: Any) -> Account | None:
    """The account, which is charged the claim whatever a release costs by itself; unchanged where there is no claim."""
    return account if account is None or claim is None else Claimed(account, claim)


class Charged(Exception):
    """Raised by `UpToTheCharge` once the charge is on disk, so that nothing else happens to blank records."""


class UpToTheCharge:
    """An account that charges and then stops whoever asked."""

    def __init__(self, account: Account):
        self._account, self.after_failure = account, _after_failure(account)
        self.charged: tuple[str, Any, Any] = ("", None, None)

    def require(self, cost: Any) -> None:
        """As of an account."""
        self._account.require(cost)

    def charge(self, method: str, cost: Any, key: Any) -> None:
        """As of an account. Errors: `Charged` afterwards."""
        self._account.charge(method, cost, key)
        self.charged = method, cost, key
        raise Charged


class Paid:
    """An account from which one charge was made: it lets that one pass and nothing else."""

    def __init__(self, charged: UpToTheCharge):
        self._method, self._cost, self._key = charged.charged
        self.after_failure = charged.after_failure

    def require(self, cost: Any) -> None:
        """Errors: RuntimeError for another cost than the one that was charged."""
        if not _same(cost, self._cost):
            raise RuntimeError("a release costs something else than was charged for it.")

    def charge(self, method: str, cost: Any, key: Any) -> None:
        """Errors: RuntimeError for another release than the one that was charged."""
        self.require(cost)
        if method != self._method or key is not self._key:
            raise RuntimeError("a release is not the one that was charged.")


class _Remembering:
    """An account that remembers what it was charged."""

    def __init__(self, account: Account):
        self._account, self.after_failure = account, _after_failure(account)
        self.charged: list[tuple[str, Any]] = []

    def require(self, cost: Any) -> None:
        self._account.require(cost)

    def charge(self, method: str, cost: Any, key: Any) -> Any:
        self.charged.append((method, cost))
        try:
            return self._account.charge(method, cost, key)
        except Charged:
            raise
        except BaseException:
            self.charged.pop()
            raise


def describe(error: BaseException) -> str:
    """The notes about charges that an error carries, as sentences; "" where it carries none."""
    return " ".join(note for note in getattr(error, "__notes__", ()) if STANDS in note)


def _explain(error: BaseException, account: Any, method: str, cost: Any) -> None:
    """Adds the note once, however many contexts the error passes."""
    note = (
        f"{method} was charged ({cost}) before this happened. {STANDS}, because the records may have been read; "
        f"{_after_failure(account)}."
    )
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _after_failure(account: Any) -> str:
    return getattr(account, "after_failure", PAID_AGAIN)


def _same(cost: Any, other: Any) -> bool:
    amounts = [[float(getattr(c, name)) for name in ("epsilon", "delta", "rho")] for c in (cost, other)]
    return cost.relation == other.relation and all(map(_equal, *amounts))


def _equal(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))
