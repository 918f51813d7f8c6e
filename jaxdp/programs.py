"""Compiled programs: keeping them between processes, and compiling them before the data are there.

    jaxdp.programs.keep()                            # in ~/.cache/jaxdp/programs; the command line does this
    jaxdp.programs.keep("folder")                    # elsewhere
    jaxdp.programs.forget()                          # from here on, nowhere
    jaxdp.programs.compile(test, jaxdp.Data(x, y))   # a release of data of these shapes compiles nothing more

Environment: JAXDP_PROGRAMS=off keeps nothing, whatever is called; JAXDP_PROGRAMS=FOLDER names the folder.
"""

from typing import Any

import jax

from jaxdp import core
from jaxdp._base.programs import folder, forget, keep
from jaxdp.randomness import keys

__all__ = ["compile", "folder", "forget", "keep"]


def compile(test: Any, shapes: Any, *, simulation: bool = False) -> None:
    """Compiles what `jaxdp.run(test, key, data)` needs for data of these shapes, by a run on zeros that is thrown away.

    test: any test, or a query that is released. shapes: `jaxdp.Data` whose columns are arrays, of which only shape and
    dtype are read, or `jax.ShapeDtypeStruct`; columns that the test declares public must be there. simulation:
    for the keys of `jax.random.key`, in place of those of `jaxdp.fresh_key`.
    Nothing is charged. What the release of a first stage decides about the next one may still be compiled later. With
    `keep` the programs of a release are on the disk afterwards, for other processes.
    Errors: those of the run, for a test that does not fit these shapes.
    """
    with_p_value = isinstance(test, core.PrivateTest) or not isinstance(test, core.PrivateQuery)
    key = jax.random.key(0) if simulation else keys.fresh_key()
    (core.run if with_p_value else core.release)(test, key, core.blank(test, shapes))
