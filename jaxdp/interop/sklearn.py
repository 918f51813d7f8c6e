"""Selection of features for scikit-learn by private tests.

selector = PrivateSelector(epsilon=2.0, bounds=(0.0, 10.0), target=["no", "yes"])
pipeline = make_pipeline(selector, LogisticRegression())       # the classifier itself is not private
"""

from __future__ import annotations

import contextlib
import functools
import math
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from jaxdp import charge, null_laws
from jaxdp._base import check
from jaxdp._base.amounts import spent
from jaxdp._base.owner import OWNER
from jaxdp.accounting.composition import compose
from jaxdp.accounting.ledger import BudgetExhausted
from jaxdp.ask.independence import Query
from jaxdp.ask.pairs_plan import require_reachable, with_more_draws
from jaxdp.ask.reading import Table
from jaxdp.ask.session import Session
from jaxdp.ask.table_query import account_of
from jaxdp.data.parse_report import ParseReport
from jaxdp.data.schema import Schema
from jaxdp.randomness import keys

TARGET = "target"
MIN_SAMPLES = 10  # of any private test
RESULTS = ("p_values_", "adjusted_p_values_", "support_")
DIGITS = 10**9  # a share of the budget is cut to so many parts, which a ledger charges as they are
ADJUST = {"holm": null_laws.holm, "bh": null_laws.benjamini_hochberg}


class PrivateSelector(SelectorMixin, BaseEstimator):
    """Keeps the features that a private test finds dependent on the target.

    epsilon: budget of one `fit`, shared equally by the features. bounds: public bounds (low, high) of every feature, or
    a mapping of feature name (without names: its number) -> bounds. target: public bounds (low, high) of a numeric
    target as a tuple, or the list of its levels.
    level: of the adjusted p-values. adjust: "holm" (family-wise error) or "bh" (false discovery rate). method: as in
    `jaxdp.test`; None chooses by the kinds of columns.
    ledger: a `jaxdp.Ledger`, which every fit charges once for all of its features, before it tests the first.
    random_state: None makes a release; a whole number makes a simulation, which is NOT PRIVATE.
    `fit(X, y)` takes X (n, features) of numbers and y (n,); values beyond bounds are clipped, and missing values are
    refused. Sets `p_values_` and `adjusted_p_values_` (features,), `support_`, `answers_`, `n_features_in_`. A fit that
    is interrupted keeps the answers so far in `answers_`, and its exception says what was charged.
    Every fit pays anew: a search over parameters or folds pays once for each of its fits, and folds overlap in records.
    Privacy: epsilon-DP for replacing a record of (X, y), by sequential composition over the features. What is fitted
    to the selected features afterwards is not covered.
    Errors: ValueError for bounds, a target or settings that are missing or do not fit, before anything is charged.
    Source: `jaxdp.test` for each feature; Holm (1979), Benjamini and Hochberg (1995).
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = None,
        target: Any = None,
        level: float = 0.05,
        adjust: str = "holm",
        method: str | None = None,
        ledger: Any = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.bounds = bounds
        self.target = target
        self.level = level
        self.adjust = adjust
        self.method = method
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> PrivateSelector:
        """Tests every feature against the target."""
        check.in_range(0.0, 1.0, level=self.level)
        check.positive(epsilon=self.epsilon)
        check.one_of(ADJUST, adjust=self.adjust)
        wanted = {"dtype": "numeric", "y_numeric": self._is_numeric(), "ensure_min_samples": MIN_SAMPLES}
        try:
            features, target = validate_data(self, X, y, **wanted)
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            # NumPy's own words quote the cell
            raise ValueError(
                "X or y has cells that are no numbers: convert them, or leave those columns out."
            ) from None
        names = [f"feature {i}" for i in range(features.shape[1])]
        columns = {name: self._rule(i) for i, name in enumerate(names)} | {TARGET: self._target_rule()}
        table = dict(zip(names, features.astype(float).T, strict=True)) | {TARGET: np.asarray(target)}
        self._require_left()
        begin = functools.partial(Session, table, schema=Schema.from_dict({"columns": columns}), key=self._key())
        _require_known(begin.keywords["schema"], table)
        share = math.floor(self.epsilon / len(names) * DIGITS) / DIGITS
        each: list[dict[str, Any]] = [
            {"x": name, "y": TARGET, "epsilon": share, "method": self.method} for name in names
        ]
        each = [self._with_draws(begin.keywords["schema"], asked, len(names)) for asked in each]
        with self._paid(begin, each) as session:
            for result in RESULTS:  # of an earlier fit
                self.__dict__.pop(result, None)
            self.answers_ = []
            for asked in each:
                self.answers_.append(session.test(**asked))
        self.p_values_ = np.array([answer.p_value for answer in self.answers_])
        with jax.enable_x64(True):
            self.adjusted_p_values_ = np.asarray(ADJUST[self.adjust](self.p_values_))
        self.support_ = self.adjusted_p_values_ <= self.level
        return self

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "support_")
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.non_deterministic = self.random_state is None
        return tags

    def _key(self) -> Any:
        """None for a release."""
        if self.random_state is None:
            return None
        if not isinstance(self.random_state, numbers.Integral):
            raise ValueError(f"random_state must be None (a release) or a whole number, got {self.random_state!r}.")
        return jax.random.key(int(self.random_state))

    def _require_left(self) -> None:
        """Errors: `BudgetExhausted` where the ledger has less left than the features cost together."""
        if self.ledger is None:
            return
        charge.require_account(self.ledger)
        left = self.ledger.remaining.epsilon
        if left is not None and left < self.epsilon:
            raise BudgetExhausted(
                f"this fit costs epsilon {spent(self.epsilon)}, and the ledger has {spent(left)} left."
            )

    @contextlib.contextmanager
    def _paid(self, begin: Callable[..., Session], each: Sequence[dict[str, Any]]) -> Iterator[Session]:
        """The session that asks each, paid by one charge once every one of them got as far as its charge."""
        if self.ledger is None:
            yield begin(epsilon=self.epsilon)
            return
        estimate = charge.Estimate()
        session = begin(ledger=estimate)
        for asked in each:
            with contextlib.suppress(charge.Charged):
                session.test(**asked)
        cost, names = compose(estimate.costs), ", ".join(asked["x"] for asked in each)
        account = account_of(self.ledger, Table({}, session.schema), f"{names} ~ {TARGET}")
        with charge.paid(account, estimate.method, cost, keys.fresh_key(), mode=keys.RELEASE, rehearse=None):
            yield begin(ledger=charge.Prepaid(account, cost, estimate.costs))

    def _with_draws(self, schema: Schema, asked: dict[str, Any], count: int) -> dict[str, Any]:
        """The same with null tables enough that the adjusted p-value of one feature among so many can be small."""
        query = with_more_draws(Query.of(schema, **asked), self.level / count)
        if self.adjust == "holm":
            require_reachable(query, self.level / count, count, "features")
        draws = query.settings.fields.get("num_null")
        return asked if draws is None else asked | {"fields": {"num_null": draws}}

    def _is_numeric(self) -> bool:
        return isinstance(self.target, tuple) and _is_bounds(self.target)  # a list of two is levels

    def _rule(self, place: int) -> dict[str, Any]:
        name = getattr(self, "feature_names_in_", range(place + 1))[place]
        found: Any = self.bounds.get(name) if isinstance(self.bounds, Mapping) else self.bounds
        if not _is_bounds(found):
            raise ValueError(
                f"bounds of feature {name!r} must be two numbers, as bounds=(low, high) for every feature or in a "
                f"mapping of feature -> (low, high), public and not the least and largest value of the records; got "
                f"{found!r}."
            )
        return {"kind": "continuous", "bounds": [float(end) for end in found]}

    def _target_rule(self) -> dict[str, Any]:
        target: Any = self.target
        if self._is_numeric():
            return {"kind": "continuous", "bounds": [float(end) for end in target]}
        levels = [] if target is None or isinstance(target, str) else list(target)
        if len(levels) < 2:
            raise ValueError(
                "target is not known: give target=(low, high) of a numeric target, or the list of its levels, "
                f"target=[...]; got {self.target!r}."
            )
        return {"kind": "binary" if len(levels) == 2 else "categorical", "levels": levels}


def _require_known(schema: Schema, table: Mapping[str, Any]) -> None:
    """Raises ValueError, for who holds the records, where a column does not hold what bounds and target say of it."""
    report = ParseReport()
    schema.read_table(table, tuple(table), report=report)
    failing = report.failing()
    told = failing[0].sentence if failing else report.harm(())
    if told:
        raise ValueError(
            f"{told}; nothing was charged: correct bounds= or target=, or leave such records out of X and y ({OWNER})."
        )


def _is_bounds(value: Any) -> bool:
    """Whether it is a pair (low, high) of numbers."""
    pair = isinstance(value, tuple | list) and len(value) == 2
    return pair and all(isinstance(end, numbers.Real) and np.isfinite(float(end)) for end in value)
