"""causal-learn: a private test as one of its `CIT` classes.

    jaxdp.interop.causal_learn_test("private")
    cg = pc(codes, 0.01, indep_test="private", test=jaxdp.ConditionalKendall(epsilon=0.1), levels=levels, epsilon=5.0)
    cg.test.queries.rows                 # what was asked and paid

Its on-disk cache is refused: it recognises data by a digest of their printed form, which large arrays share.
"""

from __future__ import annotations

from typing import Any

from jaxdp.interop.queries import PrivateQueries

PARAMETERS = "jaxdp: see queries.rows"


def causal_learn_test(name: str = "jaxdp") -> Any:
    """Registers a private test with causal-learn under this name and returns the test's class.

    causal-learn builds the object itself; keyword arguments of its `pc` reach it: `test` (a private test),
    `epsilon` or `budget`, and the others of `PrivateQueries`. `columns=` describes the data (as in `Records`),
    or `levels=`, k for codes 0, ..., k - 1 and 0 for continuous columns scaled to [-1, 1]; or give `queries=`, a
    ready `PrivateQueries` over the same columns, and keep hold of it. The object is `cg.test`, its budget
    `cg.test.queries`.
    Errors: ModuleNotFoundError without causal-learn; ValueError for cache_path.
    """
    from causallearn.utils.cit import CIT_Base, register_ci_test

    class PrivateCIT(CIT_Base):
        """P-values of a private test, each paid for once."""

        def __init__(self, data, cache_path=None, *, queries=None, columns=None, **settings):
            if cache_path is not None:
                raise ValueError("a private test keeps no cache on disk; leave cache_path out.")
            super().__init__(data)
            self.check_cache_method_consistent(name, PARAMETERS)
            if queries is None:
                described = data if columns is None else (data, columns)
                queries = PrivateQueries(settings.pop("test"), described, **settings)
            if len(queries.names) != data.shape[1]:
                raise ValueError(f"the queries are about {len(queries.names)} columns, the data have {data.shape[1]}.")
            self.queries = queries

        def __call__(self, X, Y, condition_set=None) -> float:
            return self.queries.p_value(X, Y, () if condition_set is None else tuple(condition_set))

    register_ci_test(name, PrivateCIT)
    return PrivateCIT
