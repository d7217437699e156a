"""The defects: one line of the library, found by its text, and what it should not be."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    file: str
    right: str
    wrong: str
    breaks: str
    near: tuple  # arguments of pytest: the tests that run first

    @property
    def compiled(self):
        return self.file.startswith("csrc/")

    def seed(self, text):
        """The text of the file with the defect in it."""
        times = text.count(self.right)
        if times != 1:
            raise ValueError(f"{self.file} must hold {self.right!r} once, but it is there {times}×")
        return text.replace(self.right, self.wrong)


_LAWS = "tests/laws/test_laws.py"


def _laws(expression):
    return _LAWS, "-k", expression


COMPILED = (
    Mutant(
        "csrc/rows.hpp",
        "for (std::size_t j = 0; j < count; ++j) read(row + j, i, end, to + j * length + i);",
        "",
        "of rows that lie across the memory the last few scores are not read",
        ("tests/kernels/test_formats.py", "-k", "layouts"),
    ),
    Mutant(
        "csrc/simd/convert.hpp",
        "return lower_halves((bits + 0x7fff + (bits >> 16 & 1)) >> 16);",
        "return lower_halves((bits + 0x8000) >> 16);",
        "ties are rounded up to bfloat16, not to even",
        ("tests/kernels/test_formats.py", "-k", "every_number"),
    ),
    Mutant(
        "csrc/threshold/tile.hpp",
        "count -= takes_part;",
        "count += 1;",
        "short rows count the scores that a mask excludes",
        ("tests/kernels/test_formats.py", "-k", "masks or shorter"),
    ),
    Mutant(
        "csrc/threshold/forward.hpp",
        "rows[i] = {k(first + i), temperature(first + i)};",
        "rows[i] = {k(first + i), temperature(first)};",
        "short rows side by side all take the temperature of the first",
        ("tests/test_accuracy.py", "tests/kernels/test_threshold.py"),
    ),
    Mutant(
        "csrc/threshold/backward.hpp",
        "const T unit = scale / F::kUnit;\n  for",
        "const T unit = scale;\n  for",
        "the gradient in τ is measured in units of log 2",
        ("tests/test_gradient_accuracy.py",),
    ),
    Mutant(
        "csrc/threshold/backward.hpp",
        "sums.pdf_uv = pdf == T(0) ? 0 : sums.pdf_v * double(u);",
        "sums.pdf_uv = pdf == T(0) ? 0 : double(pdf) * double(u);",
        "the gradient in τ of one entry forgets its weight",
        ("tests/kernels/test_threshold.py", "-k", "upstream_of_one"),
    ),
    Mutant(
        "csrc/threshold/tile.hpp",
        "if (any<T>(~usable_)) {",
        "if (false) {",
        "a score that NaN pushed behind its row counts in the next rows",
        ("tests/kernels/test_infinities.py", "-k", "nan_stays"),
    ),
    Mutant(
        "csrc/threshold/forward.hpp",
        "[&](auto* p) { write(p + at); }",
        "[&](auto* p) { write(p); }",
        "threads that share a long row all finish its first part",
        ("tests/test_accuracy.py", "tests/runtime", "-k", "million or threads"),
    ),
    Mutant(
        "csrc/threshold/solver.hpp",
        "if (census_.nan) return {std::numeric_limits<T>::quiet_NaN(), 0};",
        "",
        "a NaN does not spread over its row",
        _laws("nan_stays_in_its_row"),
    ),
    Mutant(
        "csrc/threshold/gap.hpp",
        "return {top + std::log(sum), slope / sum};",
        "return {top, slope / sum};",
        "thresholds in a wide gap do not count the scores beside it",
        ("tests/kernels/test_threshold.py", "tests/ops/test_log_soft_topk.py"),
    ),
    Mutant(
        "csrc/densities.hpp",
        "const Pack<T> h = inner ? height : small * small * height;",
        "const Pack<T> h = inner ? height : small * height;",
        "the Cauchy density falls off too slowly in its tail",
        ("tests/test_gradient_accuracy.py",),
    ),
    Mutant(
        "csrc/permutation/permutation.cpp",
        "return v + (a.flip ? a.k - 1 - j : j) * a.n; };",
        "return v + j * a.n; };",
        "the gradient of a soft permutation ignores `descending`",
        ("tests/kernels/test_permutation.py",),
    ),
    Mutant(
        "csrc/order/laplace_blocks.hpp",
        "if (i > 1) carry[i].left +=",
        "if (i > 2) carry[i].left +=",
        "from its third block on, a long row forgets the first",
        ("tests/kernels/test_order.py",),
    ),
    Mutant(
        "csrc/sort/radix.hpp",
        "if (dropped_bits_ > 0) mend(from, n);",
        "",
        "long rows in float64 are sorted by a part of their digits",
        ("tests/kernels/test_ordering.py",),
    ),
    Mutant(
        "csrc/sort/sorted_row.hpp",
        "out[order[i]] = T(0.5 * (available + 1 + double(n)));",
        "out[order[i]] = T(0.5 * (available + double(n)));",
        "what is absent ranks half a place too early",
        _laws("masked_out_elements and soft_rank"),
    ),
    Mutant(
        "csrc/network/network.cpp",
        "Pack<V>{} + V(a_.high[c]) >= load(live_ + lane);",
        "Pack<V>{} + V(a_.high[c]) > load(live_ + lane);",
        "comparators take the first absent element for a score",
        _laws("masked_out_elements and network"),
    ),
    Mutant(
        "csrc/permutahedron/permutahedron.cpp",
        "const double scale = (a.descending ? -1 : 1) * row.scale;",
        "const double scale = row.scale;",
        "the gradient of projected ranks ignores `descending`",
        ("tests/kernels/test_permutahedron.py",),
    ),
    Mutant(
        "csrc/row_softmax/neuralsort.hpp",
        "gradient[i] -= double(2 * j + 1) * d;",
        "gradient[i] -= double(2 * j) * d;",
        "NeuralSort's gradient counts places from 0",
        ("tests/kernels/test_row_softmax.py",),
    ),
    Mutant(
        "csrc/fsum/uniform_sum.hpp",
        "behind_[0] = behind_[1] = 0;",
        "behind_[0] = 0;",
        "the window of uniform F-sums keeps a stale first moment",
        ("tests/kernels/test_fsum.py",),
    ),
)

PYTHON = (
    Mutant(
        "src/softorder/_axis.py",
        "scores = torch.where(mask, scores, -math.inf)",
        "scores = torch.where(mask, scores, math.inf)",
        "what is masked out is certain",
        _laws("masked_out_elements_are_not_the_smallest"),
    ),
    Mutant(
        "src/softorder/_axis.py",
        "result = result.unsqueeze(dim + 1 if dim >= 0 else dim)",
        "result = result.unsqueeze(dim)",
        "keepdim puts the axis of a quantile in the wrong place",
        ("tests/test_hard_orderings.py",),
    ),
    Mutant(
        "src/softorder/_check/_per_row.py",
        "wrong = ~((k >= 0) & (k <= n))",
        "wrong = (k < 0) | (k > n)",
        "a NaN among several k is accepted",
        ("tests/test_check.py",),
    ),
    Mutant(
        "src/softorder/relaxations/sums.py",
        "grads[5] = -sums.per_row(",
        "grads[5] = sums.per_row(",
        "the gradient of F-sums in τ has the wrong sign",
        _laws("gradients_match_differences"),
    ),
    Mutant(
        "src/softorder/relaxations/threshold.py",
        "step = (residual - k_scale * _nought(k))",
        "step = (residual + k_scale * _nought(k))",
        "the gradient of log p in k has the wrong sign",
        _laws("gradients_match_differences and log_soft_topk"),
    ),
    Mutant(
        "src/softorder/densities/cauchy.py",
        "v * v * v, v) * (-2 / math.pi)",
        "v * v, v) * (-2 / math.pi)",
        "the slope of the Cauchy density is too large in its tail",
        ("tests/densities", _LAWS, "-k", "densities or cauchy"),
    ),
    Mutant(
        "src/softorder/densities/normal.py",
        "v * (-945 + v * 10395)",
        "v * (945 + v * 10395)",
        "log F of the normal density is off by 1e-14 far below",
        ("tests/densities", "tests/test_accuracy.py"),
    ),
    Mutant(
        "src/softorder/relaxations/matrix.py",
        "n = max(math.ceil(k.detach().max().item()), 1)",
        "n = max(math.floor(k.detach().max().item()), 1)",
        "the last row of a k that is not whole is missing",
        _laws("mass_is_k"),
    ),
    Mutant(
        "src/softorder/relaxations/baselines.py",
        "rest = torch.where(more, rest, 0.0)  # with k = n nothing moves",
        "",
        "at k = n a renormalised sigmoid has a gradient",
        _laws("k_n_takes_everything"),
    ),
    Mutant(
        "src/softorder/kernels/sort/rows.py",
        "mirrored = torch.where(place < self.present, self.present - 1 - place, place)",
        "mirrored = self.n - 1 - place.expand_as(ordered)",
        "in descending order what is absent goes first",
        _laws("masked_out_elements"),
    ),
    Mutant(
        "src/softorder/_axis.py",
        "return mask.expand(scores.shape).movedim(dim, -1)",
        "return None if dim == 0 else mask.expand(scores.shape).movedim(dim, -1)",
        "a mask is forgotten along the first axis",
        _laws("a_mask_goes_along_with_any_axis"),
    ),
    Mutant(
        "src/softorder/losses/permutation.py",
        "places.numel() if counted is None else counted.sum()",
        "places.numel()",
        "the mean of a permutation's cross-entropy counts what is ignored",
        ("tests/losses/test_permutation.py",),
    ),
    Mutant(
        "src/softorder/kernels/one_entry/reference.py",
        "top = torch.where(p > 0, log_s.detach(), -math.inf).amax",
        "top = log_s.detach().amax",
        "a top-k cross-entropy is inf when a k without weight is far more certain",
        ("tests/losses",),
    ),
    Mutant(
        "src/softorder/losses/smooth.py",
        "coefficients[..., k] - coefficients[..., k - 1]",
        "coefficients[..., -1] - coefficients[..., -2].clamp(min=-1e3)",
        "a smooth top-k loss of absent classes",
        ("tests/losses",),
    ),
    Mutant(
        "src/softorder/sampling/_exponential.py",
        "crossed = crossed + own + own.transpose(-1, -2)",
        "crossed = crossed + 2 * own",
        "joint inclusion probabilities are not symmetric",
        ("tests/sampling",),
    ),
    Mutant(
        "src/softorder/kernels/pareto/levels.py",
        "torch.sqrt(variance + rule.least)",
        "torch.sqrt(variance + 2)",
        "steps are too long for what is like Gumbel's density",
        ("tests/sampling", "tests/kernels/test_pareto.py"),
    ),
    Mutant(
        "src/softorder/nn/attention.py",
        "hard_topk=self.hard_inference and not self.training,",
        "hard_topk=self.hard_inference,",
        "attention is hard in training, too",
        ("tests/nn/test_attention.py",),
    ),
    Mutant(
        "src/softorder/nn/gate.py",
        "sizes = probs.sum(-1, keepdim=True, dtype=torch.float64).round()",
        "sizes = probs.sum(-1, keepdim=True, dtype=torch.float64).floor()",
        "a gate lets one too few through when Σ π is rounded",
        ("tests/nn/test_gate.py",),
    ),
)

MUTANTS = COMPILED + PYTHON
