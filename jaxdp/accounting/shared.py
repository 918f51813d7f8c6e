"""Objects that hold a budget: a copy would be a second budget."""

from typing import Self


class Uncopied:
    """Copies share the object itself, and pickling is refused."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo) -> Self:
        return self

    def __reduce_ex__(self, protocol):
        raise TypeError(
            f"a {type(self).__name__} holds a privacy budget and cannot be pickled: "
            "run with n_jobs=1 or threads, or open a jaxdp.Ledger by its path in each process."
        )
