"""Even densities, one file each: a soft top-k is p = F((scores - b)/temperature) for one."""

from softorder.densities.base import Density, UserDensity
from softorder.densities.cauchy import Cauchy
from softorder.densities.laplace import Laplace
from softorder.densities.logistic import Logistic
from softorder.densities.normal import Normal
from softorder.densities.uniform import Uniform

#: By name. The compiled kernels number them in this order (csrc/threshold/topk.hpp).
BUILT_IN: dict[str, Density] = {
    density.name: density for density in (Laplace(), Logistic(), Normal(), Cauchy(), Uniform())
}

__all__ = [
    "BUILT_IN",
    "Cauchy",
    "Density",
    "Laplace",
    "Logistic",
    "Normal",
    "Uniform",
    "UserDensity",
]
