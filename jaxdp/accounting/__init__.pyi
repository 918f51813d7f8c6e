"""Written by scripts/make_stubs.py from the exports of this package: what type checkers see."""

from jaxdp.accounting.amplification import fixed_size_base_epsilon as fixed_size_base_epsilon
from jaxdp.accounting.amplification import fixed_size_epsilon as fixed_size_epsilon
from jaxdp.accounting.amplification import poisson_base_epsilon as poisson_base_epsilon
from jaxdp.accounting.amplification import poisson_epsilon as poisson_epsilon
from jaxdp.accounting.amplification import subsample_fixed_size as subsample_fixed_size
from jaxdp.accounting.amplification import subsample_poisson as subsample_poisson
from jaxdp.accounting.composition import compose as compose
from jaxdp.accounting.filters import ApproximateFilter as ApproximateFilter
from jaxdp.accounting.filters import ConcentratedFilter as ConcentratedFilter
from jaxdp.accounting.filters import Odometer as Odometer
from jaxdp.accounting.filters import PureFilter as PureFilter
from jaxdp.accounting.filters import RenyiFilter as RenyiFilter
from jaxdp.accounting.filters import privacy_filter as privacy_filter
from jaxdp.accounting.ledger import BudgetExhausted as BudgetExhausted
from jaxdp.accounting.ledger import Ledger as Ledger
from jaxdp.accounting.ledger import LedgerError as LedgerError
from jaxdp.accounting.optimal import largest_count as largest_count
from jaxdp.accounting.optimal import optimal_delta as optimal_delta
from jaxdp.accounting.optimal import optimal_epsilon as optimal_epsilon
from jaxdp.accounting.renyi import zcdp_epsilon as zcdp_epsilon
from jaxdp.accounting.renyi import zcdp_rho as zcdp_rho
