"""The one place that charges an account: require, rehearse, charge, and only then release.

Every query, search and plug-in pays here, so that what fails on blank records of the same shapes fails before it costs
anything, and what fails after the charge says that the charge stands. Whatever interrupts a charge says whether it was
made, was not, or may have been, and where to look. No other file of the package charges, apart from the ledger itself;
a test searches for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from jaxdp.randomness import keys

PAID_AGAIN = "asking again is charged again"  # what follows a failure, unless the account has `after_failure`

STANDS = "The charge stands"
WRITTEN, UNWRITTEN, UNKNOWN = "was charged", "was not charged", "may have been charged"
TOLD = "nothing was charged"  # of a refusal, in the words of the account


@runtime_checkable
class Account(Protocol):
    """What a release is paid from: `jaxdp.Ledger`, or your own keeper of a budget.

    It may have two things more: holds(key) -> whether it holds a charge of this key, asked where a charge was
    interrupted, and `statement`, where its owner reads what was charged.
    """

    def require(self, cost: Any) -> None:
        """Raises if the cost is not affordable; writes nothing."""

    def charge(self, method: str, cost: Any, key: Any, /) -> Any:
        """Writes the cost down durably, or raises an Exception and has written nothing."""


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
    with explaining(account) as explained:
        if mode == keys.RELEASE:
            explained.require(cost)
            if rehearse is not None:
                rehearse()
        explained.charge(method, cost, key)
        yield


@contextlib.contextmanager
def explaining(account: Account | None) -> Iterator[Any]:
    """The account, such that whatever fails in the context carries a note about every charge that it made or began."""
    if account is None:
        yield None
        return
    require_account(account)
    remembering = _Remembering(account)
    try:
        yield remembering
    except BaseException as error:
        for begun in remembering.begun:
            _explain(error, account, begun)
        raise


def once(ledger: Any, method: str, cost: Any, key: Any, txid: str | None) -> None:
    """Charges a ledger under the name of a transaction, for all runs of one search; None: under a new one."""
    ledger.charge(method, cost, key, txid=txid)


class Several:
    """Accounts that are charged together: none is charged unless all of them can afford the cost.

    They are charged in order, so one that others may have emptied in between, such as a ledger on disk, comes before a
    budget in memory, which nobody else spends.
    """

    def __init__(self, *accounts: Account):
        self.accounts = accounts

    def require(self, cost: Any) -> None:
        """As of an account."""
        for account in self.accounts:
            account.require(cost)

    def charge(self, method: str, cost: Any, key: Any) -> None:
        """As of an account. What interrupts it says which of the accounts were charged."""
        with contextlib.ExitStack() as stack:
            for account in self.accounts:
                stack.enter_context(explaining(account)).charge(method, cost, key)


class _Inner:
    """An account in front of another, which knows what its owner is told where a charge fails."""

    def __init__(self, account: Any):
        self._account = account

    @property
    def after_failure(self) -> str:
        """What follows a failure now: a search that keeps answers says so only once it has begun."""
        return getattr(self._account, "after_failure", PAID_AGAIN)

    @property
    def statement(self) -> str:
        """Where the owner reads what was charged."""
        return _statement(self._account)

    @property
    def holds(self) -> Callable[[Any], bool] | None:
        """As of an account; None where it has no such thing."""
        return getattr(self._account, "holds", None)


class Claimed(_Inner):
    """An account that is charged a claim, such as (epsilon, delta), in place of the rho-zCDP of a release."""

    def __init__(self, account: Account, claim: Any):
        super().__init__(account)
        self.claim = claim

    def require(self, cost: Any) -> None:
        """As of an account, for the claim."""
        self._account.require(self.claim)

    def charge(self, method: str, cost: Any, key: Any) -> None:
        """As of an account, for the claim."""
        self._account.charge(method, self.claim, key)


def claiming(account: Account | None, claim: Any) -> Account | None:
    """The account, which is charged the claim whatever a release costs by itself; unchanged where there is no claim."""
    return account if account is None or claim is None else Claimed(account, claim)


class Charged(Exception):
    """Raised by `UpToTheCharge` once the charge is on disk, so that nothing else happens to blank records."""


class UpToTheCharge(_Inner):
    """An account that charges and then stops whoever asked."""

    def __init__(self, account: Account):
        super().__init__(account)
        self.charged: tuple[str, Any, Any] = ("", None, None)

    def require(self, cost: Any) -> None:
        """As of an account."""
        self._account.require(cost)

    def charge(self, method: str, cost: Any, key: Any) -> None:
        """As of an account. Errors: `Charged` afterwards."""
        self._account.charge(method, cost, key)
        self.charged = method, cost, key
        raise Charged


class Paid(_Inner):
    """An account from which one charge was made: it lets that one pass and nothing else."""

    def __init__(self, charged: UpToTheCharge):
        super().__init__(charged)
        self._method, self._cost, self._key = charged.charged

    def require(self, cost: Any) -> None:
        """Errors: RuntimeError for another cost than the one that was charged."""
        if not _same(cost, self._cost):
            raise RuntimeError("a release costs something else than was charged for it.")

    def charge(self, method: str, cost: Any, key: Any) -> None:
        """Errors: RuntimeError for another release than the one that was charged."""
        self.require(cost)
        if method != self._method or key is not self._key:
            raise RuntimeError("a release is not the one that was charged.")


class Estimate:
    """An account that is never charged: it remembers the cost, and stops whoever asked where the charge would be."""

    def __init__(self) -> None:
        self.method, self.costs = "", list[Any]()

    def require(self, cost: Any) -> None:
        """Everything is affordable."""

    def charge(self, method: str, cost: Any, key: Any) -> None:
        """Errors: `Charged`, always."""
        self.method = method
        self.costs.append(cost)
        raise Charged


class Prepaid(_Inner):
    """An account of several releases that one charge, the claim, has paid for: their costs pass in order."""

    def __init__(self, account: Account, claim: Any, costs: Sequence[Any]):
        super().__init__(account)
        self.claim, self._left = claim, list(costs)

    @property
    def holds(self) -> Callable[[Any], bool]:
        """The claim is charged, whatever the key of a release."""
        return lambda key: True

    def require(self, cost: Any) -> None:
        """Errors: RuntimeError for another cost than the next one that was paid for."""
        if not self._left or not _same(cost, self._left[0]):
            raise RuntimeError("a release costs something else than was charged for it.")

    def charge(self, method: str, cost: Any, key: Any) -> None:
        """As `require`, once for each release."""
        self.require(cost)
        del self._left[0]


@dataclasses.dataclass
class _Begun:
    """A charge that was begun; written: the account returned from it. refused: it said that nothing was charged."""

    method: str
    cost: Any
    key: Any
    written: bool = False
    refused: bool = False


class _Remembering(_Inner):
    """An account that remembers which charges were begun."""

    def __init__(self, account: Account):
        super().__init__(account)
        self.begun: list[_Begun] = []

    def require(self, cost: Any) -> None:
        self._account.require(cost)

    def charge(self, method: str, cost: Any, key: Any) -> Any:
        begun = _Begun(method, getattr(self._account, "claim", cost), key)
        self.begun.append(begun)
        try:
            found = self._account.charge(method, cost, key)
        except Charged:
            begun.written = True
            raise
        except Exception as error:
            # a plain ValueError or TypeError is a mistake that was found before anything was written
            begun.refused = self.holds is None or type(error) in (ValueError, TypeError) or TOLD in str(error)
            raise
        begun.written = True
        return found


def describe(error: BaseException) -> str:
    """The notes about charges that an error carries, as sentences; "" where it carries none."""
    marks = (STANDS, UNWRITTEN, UNKNOWN)
    return " ".join(note for note in getattr(error, "__notes__", ()) if any(mark in note for mark in marks))


def _explain(error: BaseException, account: Any, begun: _Begun) -> None:
    """Adds a note about a charge, once however many contexts the error passes."""
    if begun.refused:
        return
    after, look = getattr(account, "after_failure", PAID_AGAIN), f"what was charged: {_statement(account)}"
    states = {state: f"{begun.method} {state} ({begun.cost})" for state in (WRITTEN, UNWRITTEN, UNKNOWN)}
    written = begun.written or _holds(account, begun.key)
    if begun.written:
        note = f"{states[WRITTEN]} before this happened. {STANDS}, because the records may have been read; {after}."
    elif written:
        note = f"{states[WRITTEN]}, and this happened before the records were read. {STANDS}; {after}; {look}."
    elif written is None:
        note = f"{states[UNKNOWN]}: this happened while the charge was made; {look}."
    else:
        note = f"{states[UNWRITTEN]}: this happened before the charge was made; {look}."
    known = [states[WRITTEN]] if begun.written else list(states.values())
    if not any(text in there for there in getattr(error, "__notes__", ()) for text in known):
        error.add_note(note)


def _statement(account: Any) -> str:
    return getattr(account, "statement", "ask the account that you gave")


def _holds(account: Any, key: Any) -> bool | None:
    """Whether the account holds a charge of this key; None where it cannot say, or is interrupted again."""
    holds = getattr(account, "holds", None)
    try:
        return None if holds is None else holds(key)
    except BaseException:  # what is explained is raised again
        return None


def _same(cost: Any, other: Any) -> bool:
    amounts = [[float(getattr(c, name)) for name in ("epsilon", "delta", "rho")] for c in (cost, other)]
    return cost.relation == other.relation and all(map(_equal, *amounts))


def _equal(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))
