"""Compiled programs of data of many shapes, bounded: a process that is asked about ever new numbers of records.

JAX keeps every program that a process has compiled. One more number of records is about 15 MB and 155 memory maps for
a test such as `PartitionGCM`, and Linux ends a process with more than 65 530 maps.
"""

import functools
from collections.abc import Callable
from typing import Any

from jaxdp._base.kept_programs import kept_jit

MAX_PROGRAMS = 64  # programs of a function; a sweep over more shapes than this compiles them anew


def power_of_two(count: int) -> int:
    """The least power of two that is not below: a size that serves several counts, so that few programs are needed."""
    return 1 << max(count - 1, 0).bit_length()


def bounded_jit[**P, R](function: Callable[P, R], **options: Any) -> Callable[P, R]:
    """`jax.jit(function, **options)`, which drops its programs when it has compiled more than `MAX_PROGRAMS`."""
    program: Any = kept_jit(function, **options)

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        if program._cache_size() > MAX_PROGRAMS:
            program.clear_cache()
        return program(*arguments, **named)

    return call
