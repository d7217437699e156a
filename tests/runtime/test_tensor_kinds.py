"""Every public operator meets every kind of tensor that torch ships.

Out come the numbers that the same tensor gives in plain memory, or an error that names the kind:
never a crash, never other numbers.
"""

import re
from functools import partial
from pathlib import Path

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import softorder as so
from softorder import _check
from softorder.kernels import _native
from tests.runtime.public_operators import OPERATORS, RANDOM, SHAPE
from tests.runtime.tensor_kinds import KINDS, OTHER, PLAIN, REFUSED, WRAPPERS, dense, one_process

pytestmark = [  # what torch says of its own kinds of tensors
    pytest.mark.filterwarnings("ignore:.*prototype"),
    pytest.mark.filterwarnings("ignore:.*beta state"),
    pytest.mark.filterwarnings("ignore:.*not writable"),
    pytest.mark.filterwarnings("ignore:.*quantized"),
]


@pytest.fixture(scope="module", autouse=True)
def _one_of_everything():
    """One process for DTensor, and one thread: the tensors are small, and there are many."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with one_process():
        yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def scores():
    return torch.rand(SHAPE, generator=torch.Generator().manual_seed(0))


def _attempt(kind, compute):
    """What is computed, or None where it is refused by an error that names the kind."""
    if kind.word is None:
        return compute()
    try:
        return compute()
    except kind.error as error:
        text = f"{type(error).__name__}: {error}"
        assert re.search(kind.word, text, re.IGNORECASE), text
        return None


def _agree(found, expected, operator):
    """Whether they are the same, as far as there are numbers; nothing else is returned."""
    assert found.is_nested or found.shape == expected.shape, operator
    found = dense(found)
    if found is not None:
        torch.testing.assert_close(
            found,
            expected.detach(),
            rtol=1e-4,
            atol=1e-5,
            equal_nan=True,
            msg=lambda text: f"{operator}: {text}",
        )


def _squared(operator, scores):
    result = operator(scores)
    return torch.autograd.grad((result * result).sum(), scores)[0] if result.requires_grad else None


def _plain_twin(kind, value):
    """A plain tensor with the same numbers as one of the kind, made of the value."""
    return dense(kind.make(value)) if kind.word is None else value


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", KINDS)
def test_scores(name, scores):
    kind, served = KINDS[name], 0
    twin = _plain_twin(kind, scores)
    for operator, call in OPERATORS.items():
        if operator in RANDOM and not kind.draws:
            continue
        found = _attempt(kind, lambda call=call: call(kind.make(scores)))
        if found is not None:
            served += 1
            _agree(found, call(twin), operator)
    if name in REFUSED:
        assert not served
    if name in WRAPPERS:
        assert served >= len(OPERATORS.keys() - RANDOM)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", [*PLAIN, *WRAPPERS, *OTHER])
def test_gradients_of_scores(name, scores):
    kind = KINDS[name]
    if kind.make(scores).is_inference() or name.startswith("escaped"):
        return  # nothing that could require a gradient
    twin = _plain_twin(kind, scores)
    for operator, call in OPERATORS.items():
        if operator in RANDOM:
            continue
        given = kind.make(scores)
        given = given.requires_grad_() if given.is_leaf else given
        found = _attempt(kind, lambda call=call, given=given: _squared(call, given))
        if found is not None:
            _agree(found, _squared(call, twin.clone().requires_grad_()), operator)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", [*PLAIN, *WRAPPERS, *OTHER])
def test_upstream_gradients(name, scores):
    kind = KINDS[name]._replace(error=Exception)  # torch's own, mostly
    leaf = scores.clone().requires_grad_()
    for operator, call in OPERATORS.items():
        result = call(leaf)
        if not result.requires_grad or result.dim() < 2:
            continue
        given = torch.linspace(-1, 1, result.numel()).reshape(result.shape).to(result.dtype)
        twin, given = _plain_twin(kind, given), kind.make(given)
        (expected,) = torch.autograd.grad(result, leaf, twin, retain_graph=True)
        found = _attempt(kind, lambda r=result, given=given: torch.autograd.grad(r, leaf, given)[0])
        if found is not None:
            _agree(found, expected, operator)


_SOFT = {
    "soft_topk": lambda x, k, t, m: so.soft_topk(x, k, temperature=t, mask=m),
    "log_soft_topk": lambda x, k, t, m: so.log_soft_topk(x, k, temperature=t, mask=m),
    "soft_rank": lambda x, k, t, m: so.soft_rank(x, temperature=t, mask=m),
    "soft_sort": lambda x, k, t, m: so.soft_sort(x, temperature=t, mask=m, method="permutahedron"),
    "softsort": lambda x, k, t, m: so.soft_topk(x, k, temperature=t, mask=m, method="softsort"),
    "network": lambda x, k, t, m: so.soft_sort(x, temperature=t, mask=m, method="network"),
    "permutation": lambda x, k, t, m: so.soft_permutation(x, temperature=t, mask=m),
    "sinkhorn": lambda x, k, t, m: so.soft_rank(x, temperature=t, mask=m, method="sinkhorn"),
    "quantile": lambda x, k, t, m: so.soft_quantile(x, 0.5, temperature=t, mask=m),
    "hard": lambda x, k, t, m: so.hard.topk(x, k, mask=m),
}


@pytest.mark.parametrize("argument", ["k", "temperature", "mask"])
@pytest.mark.parametrize("name", KINDS)
def test_other_arguments(name, argument, scores):
    """One number per row of scores (5, 3, 5), or a mask of the scores; the others are plain."""
    kind = KINDS[name]
    kind = kind._replace(error=(kind.error, RuntimeError, AssertionError, ValueError))
    many = scores.expand(5, *SHAPE).contiguous()
    plain = {"k": torch.full((5, 3), 2.0), "temperature": torch.ones(5, 3), "mask": many > 0.1}
    if argument == "mask" and not _can_be_boolean(kind, plain["mask"]):
        return
    twins = plain | {argument: _plain_twin(kind, plain[argument])}
    if argument == "temperature" and name == "zero":
        return  # out of range
    if argument in ("k", "temperature") and name in ("integer", "uint8"):
        twins[argument] = plain[argument].long()
    for operator, call in _SOFT.items():
        given = plain | {argument: kind.make(plain[argument])}
        found = _attempt(kind, lambda call=call, given=given: call(many, *given.values()))
        if found is not None and not (name in REFUSED and argument == "mask"):
            _agree(found, call(many, *twins.values()), operator)


def _can_be_boolean(kind, mask):
    try:
        return kind.make(mask).dtype == torch.bool
    except (RuntimeError, TypeError, ValueError):
        return False


# ---- the gate itself ----------------------------------------------------------------------------


_KEYS = {"CPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU"}  # of a dense tensor on the CPU
_ELSEWHERE = ("complex", "conjugated", "quantized", "nested")  # these `_check` refuses by name


@pytest.mark.parametrize("name", [name for name in KINDS if name not in _ELSEWHERE])
def test_the_gate_and_the_dispatcher_agree_on_what_is_plain(name, scores):
    value = KINDS[name].make(scores)
    keys = set(re.findall(r"\w+", str(torch._C._dispatch_keys(value)))) - {"DispatchKeySet"}
    assert _check.plain(value) == (keys <= _KEYS and type(value) in _check.PLAIN)


def test_freed_and_empty_memory_does_not_pass(scores):
    freed = scores.clone()
    freed.untyped_storage().resize_(0)
    assert not _check.plain(freed)
    assert not _check.plain(scores[:0])
    assert _check.plain(scores)


@pytest.mark.parametrize("name", ["TwoTensor", "meta", "zero", "functional"])
def test_no_address_without_memory(name, scores):
    with pytest.raises(TypeError, match="memory of their own"):
        _native.pointer(KINDS[name].make(scores))


def test_addresses_come_from_one_place():
    """Whoever writes the next kernel asks _native.pointer, which knows what a kernel can read."""
    sources = Path(_native.__file__).parents[1].rglob("*.py")
    asking = {source.name for source in sources if ".data_ptr(" in source.read_text()}
    assert asking == {"_native.py", "_mode.py"}


# ---- modes of torch -----------------------------------------------------------------------------


class _Unchanged(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class _Watching(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class _Wrapped(TorchFunctionMode):
    """Whatever is allocated is no plain tensor."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        made = getattr(func, "__name__", "").startswith(("empty", "new_empty"))
        return KINDS["wrapper"].make(result) if made else result


@pytest.mark.parametrize(
    "mode",
    [_Unchanged, _Watching, lambda: torch.device("meta")],
    ids=["function mode", "dispatch mode", "another device by default"],
)
def test_modes_change_nothing(mode, scores):
    for operator, call in OPERATORS.items():
        if operator in RANDOM or operator == "KHotGate":
            continue
        given = scores.clone().requires_grad_()
        compute = partial(_squared, call) if call(given).requires_grad else call
        with mode():
            found = compute(given)
        _agree(found, compute(given), operator)


@pytest.mark.parametrize("operator", ["soft_topk", "soft_rank", "soft_sort", "softsort", "network"])
def test_results_without_memory_are_an_error(operator, scores):
    call = _SOFT[operator]
    with _Wrapped(), pytest.raises(TypeError, match="memory of their own"):
        call(scores, 2, 1.0, None)


@pytest.mark.filterwarnings("ignore:.*torch.jit", "ignore::torch.jit.TracerWarning")
def test_traced_graphs_are_replayed_on_other_scores(scores):
    """Compiled kernels are invisible to the tracer: it has to see operators of torch."""
    given, others = scores.clone().requires_grad_(), scores.flip(0, 1).requires_grad_()
    for operator, call in OPERATORS.items():
        if operator in RANDOM or operator == "calibrate_temperature":  # a long loop of soft_topk
            continue
        traced = torch.jit.trace(lambda x, call=call: call(x), given, check_trace=False)
        learns = call(others).requires_grad
        calls = (partial(_squared, f) if learns else f for f in (traced, call))
        with torch.jit.optimized_execution(False):
            found, expected = (call(others) for call in calls)
        _agree(found, expected, operator)
