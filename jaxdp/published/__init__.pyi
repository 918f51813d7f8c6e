"""Written by scripts/make_stubs.py from the exports of this package: what type checkers see."""

from jaxdp.published.curate import adaptive_pc as adaptive_pc
from jaxdp.published.dp_ci import PaperCRT as PaperCRT
from jaxdp.published.dp_ci import PaperGCM as PaperGCM
from jaxdp.published.mic import MICrGeometricSplit as MICrGeometricSplit
from jaxdp.published.mic import PaperMICeLaplace as PaperMICeLaplace
from jaxdp.published.mic import PaperMICrGeometric as PaperMICrGeometric
from jaxdp.published.mic import PaperMICrLaplace as PaperMICrLaplace
from jaxdp.published.priv_pc import PaperKendall as PaperKendall
from jaxdp.published.priv_pc import priv_pc_paper as priv_pc_paper
from jaxdp.published.subsampled_gaussian import gaussian_pc as gaussian_pc
from jaxdp.published.unit_circle import PaperFirstTables as PaperFirstTables
from jaxdp.published.unit_circle import PaperUnitCircle as PaperUnitCircle
