"""Beam search against enumeration and a plain reference; the soft one against the hard one."""

import itertools

import pytest
import torch

import softorder as so
from tests.nn.close import assert_compiles
from tests.nn.decoders import Recurrent

START, END, V = 0, 1, 5
_PERMUTING = sorted(row.name for row in so.methods() if row.operator == "soft_permutation")


def _search(k, max_length=4, **options):
    return so.nn.BeamSearch(k, start=START, end=END, max_length=max_length, **options)


def _soft(k, max_length=4, **options):
    options = {"temperature": 1e-7, "preselect": None, **options}
    return so.nn.SoftBeamSearch(k, start=START, end=END, max_length=max_length, **options)


def _cut(tokens, length):
    return tuple(tokens[:length].tolist())


# ---- hard -------------------------------------------------------------------------------------


def _reference(decoder, item, batch, k, max_length, penalty):
    """Lists of sequences and their log-likelihoods, continued and sorted, with no batch."""
    beams = [((), 0.0)]
    for _ in range(max_length):
        found = []
        for tokens, _ in beams:
            if tokens and tokens[-1] == END:
                found.append(tokens)
            else:
                found += [(*tokens, token) for token in range(V)]
        scored = []
        for tokens in found:
            logs = decoder.likelihoods(tokens, item, batch, START).sum().item()
            scored.append((tokens, logs / len(tokens) ** penalty))
        beams = sorted(scored, key=lambda beam: -beam[1])[:k]
    return beams


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("k", [1, 3])
def test_finds_what_a_plain_search_finds(k, penalty):
    decoder = Recurrent()
    found = _search(k, length_penalty=penalty)(decoder, decoder.embedding, decoder.start(4))
    for item in range(4):
        expected = _reference(decoder, item, 4, k, 4, penalty)
        ours = [_cut(t, n) for t, n in zip(found.tokens[item], found.lengths[item], strict=True)]
        assert ours == [tokens for tokens, _ in expected]
        scores = torch.tensor([score for _, score in expected], dtype=torch.float64)
        torch.testing.assert_close(found.scores[item], scores)


def test_with_beams_enough_it_is_exhaustive():
    decoder = Recurrent()
    found = _search(V**3, max_length=3)(decoder, decoder.embedding, decoder.start(1))
    ended = {
        s[: s.index(END) + 1] if END in s else s for s in itertools.product(range(V), repeat=3)
    }
    logs = {s: decoder.likelihoods(s, 0, 1, START).sum().item() for s in ended}
    best = sorted(logs, key=lambda s: -logs[s])
    ours = [_cut(t, n) for t, n in zip(found.tokens[0], found.lengths[0], strict=True)]
    assert ours[: len(best)] == best
    assert found.scores[0, len(best) :].isneginf().all()  # there are no more sequences


def test_ended_beams_are_filled_up_with_the_end_token_and_stop_the_search():
    decoder = Recurrent()
    with torch.no_grad():
        decoder.out.bias[END] += 2
    found = _search(3, max_length=50)(decoder, decoder.embedding, decoder.start(2))
    places = torch.arange(found.tokens.shape[-1])
    behind = places >= found.lengths.unsqueeze(-1)
    assert found.tokens.shape[-1] == found.lengths.max() < 50
    assert (found.tokens[behind] == END).all()
    assert ((found.tokens == END).int().argmax(-1) + 1 == found.lengths).all()


def test_a_length_penalty_prefers_longer_sequences():
    decoder = Recurrent()
    with torch.no_grad():
        decoder.out.bias[END] += 0.3
    lengths = [
        _search(4, 12, length_penalty=penalty)(
            decoder, decoder.embedding, decoder.start(20)
        ).lengths[:, 0].double().mean()
        for penalty in (0.0, 1.0)
    ]  # fmt: skip
    assert lengths[0] < lengths[1]


# ---- soft equals hard -------------------------------------------------------------------------


@pytest.mark.parametrize("method", [m for m in _PERMUTING if m != "network"])
@pytest.mark.parametrize("penalty", [0.0, 0.7])
def test_a_cold_soft_search_is_the_hard_one(method, penalty):
    decoder = Recurrent()
    arguments = (decoder, decoder.embedding, decoder.start(4))
    hard = _search(3, 6, length_penalty=penalty)(*arguments)
    temperature = 1e-4 if method == "cauchy" else 1e-5
    options = {"method": method, "temperature": temperature, "length_penalty": penalty}
    soft = _soft(3, 6, **options).search(*arguments)
    assert torch.equal(soft.tokens, hard.tokens)
    assert torch.equal(soft.lengths, hard.lengths)
    torch.testing.assert_close(soft.scores, hard.scores, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("k", [1, 2, 9])
def test_a_cold_soft_search_with_few_and_many_beams(k):
    """With k = 9 > V not all beams are alive after the first step."""
    decoder = Recurrent()
    arguments = (decoder, decoder.embedding, decoder.start(4))
    hard, soft = _search(k)(*arguments), _soft(k).search(*arguments)
    assert torch.equal(soft.tokens, hard.tokens)
    torch.testing.assert_close(soft.scores, hard.scores)


def _path_without_end(decoder, item, batch, k, length):
    """The best sequence of that length, by a plain beam search that may not end."""
    beams = [()]
    for _ in range(length):
        found = [(*b, token) for b in beams for token in range(V) if token != END]
        found.sort(key=lambda b: -decoder.likelihoods(b, item, batch, START).sum().item())
        beams = found[:k]
    return beams[0]


def test_the_cold_loss_is_the_likelihood_along_the_hard_path():
    decoder = Recurrent()
    target = torch.tensor([[2, 3, 4, END], [3, END, -100, -100], [END, -100, -100, -100]])
    loss = _soft(3, teacher_forcing=0.0)(decoder, decoder.embedding, decoder.start(3), target)
    logs = []
    for item, row in enumerate(target):
        wanted = row[row >= 0].tolist()
        read = _path_without_end(decoder, item, 3, 3, len(wanted) - 1)
        for t, token in enumerate(wanted):
            logs.append(decoder.likelihoods((*read[:t], token), item, 3, START)[-1])
    torch.testing.assert_close(loss, -torch.stack(logs).mean())


def test_teacher_forcing_is_cross_entropy_and_the_loss_is_the_mix():
    decoder = Recurrent()
    target = torch.tensor([[2, 3, 4, END], [3, END, -100, -100]])
    arguments = (decoder, decoder.embedding, decoder.start(2), target)
    logs = [
        decoder.likelihoods(row[row >= 0].tolist(), i, 2, START) for i, row in enumerate(target)
    ]
    forced, soft, mix = (
        _soft(2, temperature=0.5, teacher_forcing=rho)(*arguments) for rho in (1.0, 0.0, 0.3)
    )
    torch.testing.assert_close(forced, -torch.cat(logs).mean())
    torch.testing.assert_close(mix, 0.3 * forced + 0.7 * soft)
    assert (forced - soft).abs() > 0.01


# ---- soft -------------------------------------------------------------------------------------


def test_two_steps_are_algorithm_2():
    """Equations (9), (10) and the bookkeeping of appendix I.2, with loops over everything."""
    decoder, k, temperature = Recurrent(), 3, 0.8
    search = _soft(k, temperature=temperature, method="logistic", teacher_forcing=0.0)
    target = torch.tensor([[2, 3, 4]])
    loss = search(decoder, decoder.embedding, decoder.start(1), target)

    weight = decoder.embedding.weight
    begin = decoder.start(1)
    hidden = [begin["moving"][0][0]] * k
    read = [weight[START]] * k
    scores = [torch.tensor(0.0).double()] + [torch.tensor(-torch.inf).double()] * (k - 1)
    wanted, parents = [], []
    for t in range(3):
        logs, states = [], []
        for i in range(k):
            state = {"memory": begin["memory"], "moving": (hidden[i][None], begin["moving"][1])}
            logits, state = decoder.step(read[i][None], state)
            logs.append(logits.log_softmax(-1)[0])
            states.append(state["moving"][0][0])
        wanted.append([row[target[0, t]] for row in logs])
        pairs = [(i, j) for i in range(k) for j in range(V) if j != END and scores[i] > -torch.inf]
        totals = torch.stack([scores[i] + logs[i][j] for i, j in pairs])
        A = so.soft_permutation(totals, k=k, method="logistic", temperature=temperature,
                                descending=True)  # fmt: skip
        best = [pairs[int(row.argmax())] for row in A]
        read = [sum(a * weight[j] for a, (_, j) in zip(row, pairs, strict=True)) for row in A]
        hidden = [sum(a * states[i] for a, (i, _) in zip(row, pairs, strict=True)) for row in A]
        scores = [scores[i] + logs[i][j] for i, j in best]
        parents.append([i for i, _ in best])
    path = [0]
    for t in (1, 0):
        path.insert(0, parents[t][path[0]])
    expected = -torch.stack([wanted[t][path[t]] for t in range(3)]).mean()
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize("method", _PERMUTING)
def test_every_method_teaches(method):
    decoder = Recurrent()
    target = torch.tensor([[2, 3, 4, END], [3, END, -100, -100]])
    options = {"method": method, "temperature": 0.5, "learnable_temperature": True}
    search = _soft(2, teacher_forcing=0.0, **options)
    search(decoder, decoder.embedding, decoder.start(2), target).backward()
    for parameter in (*decoder.parameters(), *search.parameters()):
        assert parameter.grad.isfinite().all()
        assert parameter.grad.abs().sum() > 0


def test_derivatives():
    decoder = Recurrent(hidden=2, features=2)
    target = torch.tensor([[2, 3, END]])
    search = _soft(2, temperature=0.7, method="logistic", teacher_forcing=0.4)
    state = decoder.start(1)

    def loss(table, memory, hidden):
        given = {"memory": memory, "moving": (hidden, state["moving"][1])}
        return search(decoder, table, given, target)

    table = decoder.embedding.weight.detach().requires_grad_()
    floats = (state["memory"].requires_grad_(), state["moving"][0].requires_grad_())
    assert torch.autograd.gradcheck(loss, (table, *floats))


def test_preselection_of_everything_changes_nothing_and_of_the_best_very_little():
    decoder = Recurrent(vocabulary=V)
    target = torch.tensor([[2, 3, 4, END]])
    losses = [
        _soft(2, preselect=m, temperature=0.1, teacher_forcing=0.0)(
            decoder, decoder.embedding, decoder.start(1), target
        )
        for m in (None, 2 * V, 1000, 6)
    ]
    assert losses[0] == losses[1] == losses[2] != losses[3]
    torch.testing.assert_close(losses[0], losses[3], rtol=0.02, atol=0.0)


def test_a_large_vocabulary():
    decoder = Recurrent(vocabulary=32_000, features=8, hidden=8, dtype=torch.float32)
    target = torch.randint(2, 32_000, (2, 5), generator=torch.Generator().manual_seed(0))
    search = _soft(5, preselect=64, temperature=0.1)
    search(decoder, decoder.embedding, decoder.start(2), target).backward()
    assert decoder.embedding.weight.grad.isfinite().all()
    assert _search(5)(decoder, decoder.embedding, decoder.start(2)).tokens.shape == (2, 5, 4)


def test_what_a_step_leaves_alone_is_not_copied():
    seen = set()

    class Watched(Recurrent):
        def step(self, embedding, state):
            seen.add(id(state["memory"]))
            self.kept = state["memory"]  # so that no other tensor gets its place
            return super().step(embedding, state)

    decoder = Watched()
    _search(3)(decoder, decoder.embedding, decoder.start(2))
    assert len(seen) == 1
    seen.clear()
    _soft(3, temperature=0.5).search(decoder, decoder.embedding, decoder.start(2))
    assert len(seen) == 1


def test_a_state_of_one_number_for_each_row():
    class Clock:
        table = torch.randn(V, V, generator=torch.Generator().manual_seed(0))

        def step(self, embedding, state):
            return embedding @ self.table * state.unsqueeze(-1), state + 1.0

    arguments = (Clock(), torch.eye(V), torch.ones(2))
    hard, soft = _search(3)(*arguments), _soft(3, temperature=1e-6).search(*arguments)
    assert torch.equal(soft.tokens, hard.tokens)
    torch.testing.assert_close(soft.scores, hard.scores)


def test_training_beats_the_start():
    decoder = Recurrent(dtype=torch.float32)
    target = torch.tensor([[2, 3, 4, END], [4, 4, END, -100], [3, END, -100, -100]])
    search = _soft(3, temperature=0.2, teacher_forcing=0.5)
    optimiser = torch.optim.Adam(decoder.parameters(), lr=0.03)
    for _ in range(60):
        optimiser.zero_grad()
        search(decoder, decoder.embedding, decoder.start(3), target).backward()
        optimiser.step()
    found = _search(3)(decoder, decoder.embedding, decoder.start(3))
    for row, tokens, length in zip(target, found.tokens[:, 0], found.lengths[:, 0], strict=True):
        assert _cut(tokens, length) == tuple(row[row >= 0].tolist())


def test_compiles():
    decoder = Recurrent(dtype=torch.float32)
    target = torch.tensor([[2, END], [END, -100]])
    search = _soft(2, temperature=0.5, learnable_temperature=True)

    def loss(memory, hidden, count):
        state = {"memory": memory, "moving": (hidden, count)}
        return search(decoder, decoder.embedding, state, target)

    state = decoder.start(2)
    parameters = [*decoder.parameters(), *search.parameters()]
    assert_compiles(loss, state["memory"], *state["moving"], parameters=parameters,
                    rtol=1e-4, atol=1e-5)  # fmt: skip


def test_the_hard_search_compiles():
    decoder = Recurrent()
    search, state = _search(2, max_length=2), decoder.start(2)
    torch.compiler.reset()
    compiled = torch.compile(
        lambda state: search(decoder, decoder.embedding.weight, state),
        fullgraph=True, backend="aot_eager",
    )  # fmt: skip
    for plain, traced in zip(
        search(decoder, decoder.embedding, state), compiled(state), strict=True
    ):
        torch.testing.assert_close(traced, plain)


def test_autocast():
    decoder = Recurrent(dtype=torch.float32)
    target = torch.tensor([[2, 3, END], [3, END, -100]])
    search = _soft(2, temperature=0.5)
    plain = search(decoder, decoder.embedding, decoder.start(2), target)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = search(decoder, decoder.embedding, decoder.start(2), target)
    torch.testing.assert_close(loss, plain, rtol=0.05, atol=0.05)
    loss.backward()
    assert all(p.grad.isfinite().all() for p in decoder.parameters())


def test_state_dict_round_trip():
    source = _soft(2, temperature=0.3, learnable_temperature=True)
    target = _soft(2, temperature=2.0, learnable_temperature=True)
    target.load_state_dict(source.state_dict())
    assert target.temperature == source.temperature


def test_wrong_arguments():
    decoder = Recurrent()
    for options, error, message in [
        ({"k": 0}, ValueError, "k must be at least 1"),
        ({"end": -1}, ValueError, "end must be at least 0"),
        ({"max_length": 0}, ValueError, "max_length must be at least 1"),
        ({"length_penalty": -1.0}, ValueError, "length_penalty must be finite and >= 0"),
    ]:
        for search in (so.nn.BeamSearch, so.nn.SoftBeamSearch):
            with pytest.raises(error, match=message):
                search(**{"k": 2, "start": 0, "end": 1, "max_length": 3, **options})
    with pytest.raises(ValueError, match="preselect must be at least 3, but got 2"):
        _soft(3, preselect=2)
    with pytest.raises(ValueError, match="teacher_forcing must be between 0 and 1"):
        _soft(3, teacher_forcing=1.5)
    state, table = decoder.start(2), decoder.embedding
    for arguments, error, message in [
        ((object(), table, state), TypeError, "decoder must have a method step, but got object"),
        ((decoder, table.weight[0], state), ValueError, "embedding must have at least 2 axes"),
        ((decoder, table.weight[:1], state), ValueError, "end must be between 0 and 0, but got 1"),
        ((decoder, torch.nn.ReLU(), state), TypeError, "an nn.Embedding, but got ReLU"),
        ((decoder, table, ()), ValueError, "state must hold at least one tensor"),
        ((decoder, table, (1.0,)), TypeError, "state must hold tensors, but got float"),
        ((decoder, table, (torch.ones(2), torch.ones(3))), ValueError, "batch on their first axis"),
    ]:
        with pytest.raises(error, match=message):
            _search(2)(*arguments)
    for target, error, message in [
        (torch.tensor([[2.0], [3.0]]), TypeError, "target must be a tensor of int64"),
        (torch.tensor([[2, 3]]), ValueError, r"target must have shape \(2, T\) with T > 0"),
        (torch.tensor([[2], [7]]), ValueError, "target must be between 0 and 4, .* but got 7"),
        (torch.tensor([[2, 3], [-100, 3]]), ValueError, "ignore_index only behind"),
    ]:
        with pytest.raises(error, match=message):
            _soft(2)(decoder, table, state, target)


def test_repr_tells_how_it_was_made():
    assert repr(_search(3)) == ("BeamSearch(k=3, start=0, end=1, max_length=4, length_penalty=0.0)")
    for part in ("k=3", "teacher_forcing=0.8", "preselect=None", "method='laplace'"):
        assert part in repr(_soft(3))
