"""The problems that laws are tried on."""

from dataclasses import dataclass, replace

import torch
from hypothesis import strategies as st


@dataclass(frozen=True)
class Problem:
    scores: torch.Tensor  # (rows, n), float64
    k: torch.Tensor  # (rows,), strictly between 0 and n
    temperature: torch.Tensor  # (rows,)
    seed: int  # for laws that need more random numbers

    @property
    def n(self):
        return self.scores.shape[-1]

    @property
    def arguments(self):
        return self.scores, self.k, self.temperature

    def solve(self, op, **options):
        return op(self.scores, self.k, temperature=self.temperature, **options)

    def copy(self):
        """With tensors of its own: laws share their problems."""
        return replace(self, **{name: getattr(self, name).clone() for name in _TENSORS})

    def generator(self):
        return torch.Generator().manual_seed(self.seed)


_TENSORS = ("scores", "k", "temperature")


@st.composite
def coarse_problems(draw):
    """Scores on a grid of eighths: ties are common, and adding an integer loses nothing."""
    rows, n = draw(st.integers(1, 3)), draw(st.integers(1, 8))
    eighths = st.lists(st.integers(-32, 32), min_size=n, max_size=n)
    scores = [draw(eighths) for _ in range(rows)]
    k = [draw(_inner_k(n)) for _ in range(rows)]
    exponent = [draw(st.floats(-3, 3)) for _ in range(rows)]
    return Problem(
        scores=torch.tensor(scores, dtype=torch.float64) / 8,
        k=torch.tensor(k, dtype=torch.float64),
        temperature=10 ** torch.tensor(exponent, dtype=torch.float64),
        seed=draw(st.integers(0, 2**31)),
    )


def _inner_k(n):
    """Real or whole, strictly between 0 and n."""
    real = st.floats(1e-3, n - 1e-3)
    return real if n == 1 else st.one_of(real, st.integers(1, n - 1).map(float))


def generic_problem(seed, rows=2, n=4):
    """No ties, no kinks: for derivatives by differences."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape):
        return torch.rand(*shape, dtype=torch.float64, generator=generator)

    return Problem(
        scores=torch.randn(rows, n, dtype=torch.float64, generator=generator),
        k=0.4 + (n - 0.8) * random(rows),
        temperature=0.3 + random(rows),
        seed=seed,
    )


def generic_problems():
    shape = {"rows": st.integers(1, 2), "n": st.integers(1, 5)}
    return st.builds(generic_problem, st.integers(0, 2**31), **shape)
