"""Secrets that serve once: a release key, the state of a sparse vector in a release."""

import os
import threading
from typing import Any, ClassVar, NoReturn

from jaxdp.randomness import traces


class SingleUse:
    """Holds a secret that is taken out once, in plain Python, in the process that made it, and is forgotten then.

    It can't be printed, copied, pickled, turned into an array or put into a pytree. Subclasses say what they are
    (`_what`) and the way out of a second use (`_way_out`).
    """

    __slots__ = ("__lock", "__process", "__secret")

    _what: ClassVar[str]
    _way_out: ClassVar[str]

    def __init__(self, secret: Any):
        self.__secret = secret
        self.__process = os.getpid()
        self.__lock = threading.Lock()

    @property
    def spent(self) -> bool:
        """Whether the secret has been taken."""
        return self.__secret is None

    def require_unused(self) -> None:
        """Raises ValueError if the secret has been taken, or in another process."""
        if os.getpid() != self.__process:
            raise ValueError(f"{self._what} works only in the process that made it; make a fresh key there.")
        if self.spent:
            raise ValueError(
                f"{self._what} has been used already, and the same noise twice would reveal the data; {self._way_out}."
            )

    def _take(self) -> Any:
        """The secret, once. Errors: as `require_unused`; RuntimeError under a JAX transformation."""
        traces.require_plain_python(self._what)
        with self.__lock:
            self.require_unused()
            secret, self.__secret = self.__secret, None
        return secret

    @property
    def __jax_array__(self) -> NoReturn:
        if traces.reads_arguments():
            raise RuntimeError(f"{self._what} can't be an argument of jax.jit: {self._way_out}, in plain Python.")
        raise TypeError(f"{self._what} is no array: {self._way_out}.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<secret>, {'spent' if self.spent else 'unused'})"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __refuse(self, *_) -> NoReturn:
        raise TypeError(f"{self._what} can't be copied, pickled or saved; {self._way_out}.")

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = __refuse
