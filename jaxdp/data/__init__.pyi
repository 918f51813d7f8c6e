"""Written by scripts/make_stubs.py from the exports of this package: what type checkers see."""

from jaxdp.data.columns import Column as Column
from jaxdp.data.columns import Domain as Domain
from jaxdp.data.dataset import Data as Data
from jaxdp.data.schema import Schema as Schema
