"""Designs: laws of k-hot vectors with given inclusion probabilities, one file each."""

from softorder.sampling._base import Design, DesignTable, designs, find, register
from softorder.sampling._sample import sample
from softorder.sampling.brewer import Brewer
from softorder.sampling.conditional_poisson import ConditionalPoisson
from softorder.sampling.gumbel import GumbelTopK
from softorder.sampling.pareto import Pareto
from softorder.sampling.pareto_adjusted import AdjustedPareto
from softorder.sampling.pareto_corrected import CorrectedPareto
from softorder.sampling.pivotal import OrderedPivotal, Pivotal
from softorder.sampling.poisson import Poisson
from softorder.sampling.sampford import Sampford
from softorder.sampling.systematic import Systematic

__all__ = [
    "AdjustedPareto",
    "Brewer",
    "ConditionalPoisson",
    "CorrectedPareto",
    "Design",
    "DesignTable",
    "GumbelTopK",
    "OrderedPivotal",
    "Pareto",
    "Pivotal",
    "Poisson",
    "Sampford",
    "Systematic",
    "designs",
    "find",
    "register",
    "sample",
]
