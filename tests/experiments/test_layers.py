"""The experiments of the layers: loaders on small files of the same format, and tiny runs."""

import zipfile
from dataclasses import replace

import pytest
import torch

from experiments.beam_search import config as beam_config
from experiments.beam_search import data as words
from experiments.beam_search import experiment as beam_search
from experiments.beam_search import training as beam_training
from experiments.beam_search.model import Speller
from experiments.experiment import Setting
from experiments.topk_attention import config as attention_config
from experiments.topk_attention import data as sentences
from experiments.topk_attention import experiment as attention
from experiments.topk_attention.model import Translator
from experiments.trials import Trials

# ---- beam search ------------------------------------------------------------------------------

_DICTIONARY = """\
a AH0
a(2) EY1
cab K AE1 B
bad B AE1 D # a comment
dab D AE1 B
3d TH R IY1 D IY0
abracadabra AE B R AH K AH D AE B R AH
"""


def test_the_dictionary_is_read(tmp_path):
    (tmp_path / "cmudict.dict").write_text(_DICTIONARY)
    found = words.load(Setting(tmp_path), words=3, test_words=1, letters=5, seed=0)
    spellings = [*found.training.spellings, *found.test.spellings]
    assert sorted(spellings) == ["a", "bad", "cab", "dab"]
    assert found.names == ["<start>", "<end>", "AE", "AH", "B", "D", "EY", "K"]
    everything = dict(zip(spellings, [*found.training.spoken, *found.test.spoken], strict=True))
    assert everything["a"] == [(3, 1), (6, 1)]
    assert everything["bad"] == [(4, 2, 5, 1)]
    letters, lengths = found.training.letters([0, 1, 2])
    assert letters.shape == (3, 3)
    assert lengths.tolist() == [len(s) for s in found.training.spellings]


def test_too_small_a_dictionary_is_said_to_be(tmp_path):
    (tmp_path / "cmudict.dict").write_text(_DICTIONARY)
    with pytest.raises(SystemExit, match="200 words are wanted, there are 4"):
        words.load(Setting(tmp_path), 100, 100, 5, 0)


def test_edit_distance():
    cases = [([], [], 0), ([1], [], 1), ([1, 2, 3], [1, 3], 1), ([1, 2], [2, 1], 2)]
    cases += [([1, 2, 3, 4], [5, 2, 3], 2), ([1, 1, 1], [1], 2)]
    for a, b, distance in cases:
        assert beam_training.edit_distance(a, b) == beam_training.edit_distance(b, a) == distance


def test_every_arm_of_the_beam_search_runs(tmp_path):
    (tmp_path / "cmudict.dict").write_text(_DICTIONARY)
    config = replace(beam_config.PRESETS["quick"], words=3, test_words=1, letters=4, hidden=8,
                     batch=4, pretraining=3, updates=2, k=2)  # fmt: skip
    trials = Trials("", {})
    session = beam_search.Session(config, Setting(tmp_path), trials)
    torch.manual_seed(0)
    for arm in beam_config.ARMS:
        figures = session.trial(arm, 0)
        trials.add(arm, 0, figures)
        assert 0 <= figures["words"] <= 1
        assert figures["updates"] == 2 or arm.endswith("same time")
        assert "choice" not in figures
    with pytest.raises(SystemExit, match="needs 'soft beam, laplace' to run before"):
        beam_search.Session(config, Setting(tmp_path), Trials("", {})).trial(
            "teacher forcing, same time", 0
        )


def test_phrases_are_words_said_one_after_the_other(tmp_path):
    (tmp_path / "cmudict.dict").write_text(_DICTIONARY)
    found = words.load(Setting(tmp_path), 2, 1, 5, seed=0, validation_words=1, phrase=3)
    single = words.load(Setting(tmp_path), 2, 1, 5, seed=0, validation_words=1)
    for part in ("training", "test", "validation"):
        phrases, alone = getattr(found, part), getattr(single, part)
        spoken = dict(zip(alone.spellings, alone.spoken, strict=True))
        for spelling, ways in zip(phrases.spellings, phrases.spoken, strict=True):
            parts = [spoken[word] for word in spelling.split(" ")]
            assert len(parts) == 3
            usual = [t for part in parts for t in part[0] if t != words.END]
            assert ways[0] == (*usual, words.END)
            assert len(ways) == len(parts[0]) * len(parts[1]) * len(parts[2])
        letters, lengths = phrases.letters([0])
        assert lengths.item() == len(phrases.spellings[0])
        assert (letters == 1 + len(words.LETTERS)).sum() == 2  # the spaces


def test_the_best_candidate_on_the_validation_part_is_taken(tmp_path):
    (tmp_path / "cmudict.dict").write_text(_DICTIONARY)
    config = replace(beam_config.PRESETS["paper"], words=2, test_words=1, validation_words=1,
                     letters=4, phrase=2, hidden=8, batch=4, pretraining=4, updates=2, k=2,
                     looks=2)  # fmt: skip
    trials = Trials("title", {})
    session = beam_search.Session(config, Setting(tmp_path), trials)
    torch.manual_seed(0)
    sizes = {len(beam_config.candidates(arm, config)) for arm in config.arms}
    assert sizes == {4}  # the same budget
    for arm in config.arms:
        figures = session.trial(arm, 0)
        trials.add(arm, 0, figures)
        assert 0 <= figures["choice"] < 4
        assert figures["curve_updates"][0] == 0
        if not arm.endswith("same time"):
            assert figures["curve_updates"] == [0, 1, 2]
    pytest.importorskip("matplotlib")
    beam_search.draw(trials, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_phrases_of_several_sizes_are_groups_of_arms(tmp_path):
    (tmp_path / "cmudict.dict").write_text(_DICTIONARY)
    config = replace(beam_config.PRESETS["long"], words=2, test_words=1, validation_words=1,
                     letters=4, phrases=(1, 2), hidden=8, batch=4, pretraining=2, updates=1, k=2,
                     looks=1)  # fmt: skip
    trials = Trials("title", {})
    trial = beam_search.session(config, Setting(tmp_path), trials)
    assert beam_search.arms(config)[::3] == ["1 word, teacher forcing", "2 words, teacher forcing"]
    torch.manual_seed(0)
    for arm in beam_search.arms(config):
        trials.add(arm, 0, trial(arm, 0))
        assert {"forced", "own", "choice"} <= trials.records[-1].keys()
    same = trials.find("2 words, teacher forcing, same time", 0)
    assert same["tuning"] >= trials.find("2 words, soft beam, laplace", 0)["tuning"]


def test_exposure_counts_errors_after_the_right_phones_and_after_its_own():
    """A chain 2 → 3 → 4 → end that begins with 3, where 2 is right: after the right phones one of
    three is wrong; by itself it says 3 4 instead of 2 3 4, one deletion; from 4 on, two."""

    class Chain(Speller):
        def __init__(self, first):
            super().__init__(5, 4, 28)
            self.first = first

        def step(self, embedding, state):
            before = (self.phones.weight == embedding[:, None]).all(-1).int().argmax(-1)
            after = torch.tensor([self.first, 1, 3, 4, 1])[before]
            return torch.nn.functional.one_hot(after, 5) * 9.0, state

    text = words.Words(["ab"], [[(2, 3, 4, words.END), (3, 4, words.END)]])
    settings = beam_config.PRESETS["quick"]
    for first, own in ((2, 0), (3, 1 / 3), (4, 2 / 3)):
        figures = beam_training.exposure(Chain(first), text, settings)
        assert figures["forced"] == (0 if first == 2 else 1 / 3)
        assert figures["own"] == own
        assert figures["length"] == 3


def test_scheduled_sampling_reads_the_right_token_or_its_own():
    torch.manual_seed(0)
    model = Speller(6, 8, 27)
    state = model.read(torch.tensor([[3, 4], [5, 0]]), torch.tensor([2, 1]))
    target = torch.tensor([[2, 3, 1], [4, 1, -100]])
    plan = beam_training.Plan("teacher forcing", beam_config.Candidate(), 1.0)
    forced = beam_training.searching(plan, beam_config.PRESETS["quick"])
    expected = forced(model, model.phones, state, target).item()
    assert model.scheduled(state, target, 0.0).item() == pytest.approx(expected, rel=1e-5)
    assert model.scheduled(state, target, 1.0).item() != pytest.approx(expected, rel=1e-5)


# ---- attention --------------------------------------------------------------------------------


def _archive(folder, pairs):
    lines = "".join(f"{english}\t{french}\tCC-BY 2.0 (France)\n" for english, french in pairs)
    with zipfile.ZipFile(folder / "fra-eng.zip", "w") as archive:
        archive.writestr("fra.txt", lines)


_PAIRS = [
    ("I'm here.", "Je suis là."),
    ("Go!", "Va !"),
    ("Go!", "Bouge !"),
    ("It's 2 o'clock.", "Il est 2 heures."),
    ("Come here.", "Viens là."),
    ("A very long sentence, is it not? Yes.", "Une phrase longue."),
]


def test_sentences_are_read(tmp_path):
    _archive(tmp_path, _PAIRS)
    found = sentences.load(Setting(tmp_path), 3, 1, words=7, vocabulary=100, seed=0)
    pairs = {tuple(english): french for english, french in [*found.training, *found.test]}
    assert pairs[("i'", "m", "here", ".")] == ["je", "suis", "là", "."]
    assert pairs[("go", "!")] == ["va", "!"]  # the first of two
    assert len(pairs) == 4
    row = found.french.tensor([found.training[0][1]], wrap=True)[0].tolist()
    assert row[0] == sentences.START
    assert found.french.text(row[1:]) == " ".join(found.training[0][1])
    assert found.french.tensor([["nonsense"]], wrap=False).tolist() == [[sentences.UNKNOWN]]


def test_every_arm_of_attention_runs(tmp_path):
    pytest.importorskip("sacrebleu")
    _archive(tmp_path, _PAIRS)
    config = replace(attention_config.PRESETS["quick"], pairs=3, test_pairs=1, vocabulary=50,
                     width=8, heads=2, layers=1, batch=4, updates=3)  # fmt: skip
    losses = {}
    for arm in attention_config.ARMS:
        figures = attention.trial(arm, 0, config, Setting(tmp_path), Trials("title", {}))
        losses[arm] = figures["loss"]
        assert "curve_loss" not in figures  # there is no validation part
        assert ("hard" in figures) == (arm != "softmax")
    # the arms are not the same network: soft at ε is logistic at ε/2
    assert len(set(losses.values())) == len(losses)


def test_attention_is_chosen_on_the_validation_part_and_drawn(tmp_path):
    pytest.importorskip("sacrebleu")
    pytest.importorskip("matplotlib")
    _archive(tmp_path, _PAIRS)
    config = replace(attention_config.PRESETS["tuned"], pairs=2, test_pairs=1, validation_pairs=1,
                     vocabulary=50, width=8, heads=2, layers=1, batch=4, updates=2)  # fmt: skip
    assert {len(attention_config.candidates(arm, config)) for arm in config.arms} == {4}
    trials = Trials("title", {})
    for arm in config.arms:
        figures = attention.trial(arm, 0, config, Setting(tmp_path), trials)
        trials.add(arm, 0, figures)
        assert figures["curve_updates"] == [1, 2]
        assert figures["curve_loss"][-1] == figures["validation_loss"]
        assert len(figures["curve_loss"]) == 2
        weights = torch.tensor(figures["map_weights"])
        assert weights.shape == (len(figures["map_french"]), len(figures["map_english"]))
        assert torch.allclose(weights.sum(-1), torch.ones(len(weights)), atol=1e-4)
    attention.pictures.draw(trials, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert Trials.read(_kept(trials, tmp_path)).records[0]["map_english"][0].isprintable()


def test_the_first_seed_chooses_the_attention_of_the_others(tmp_path, monkeypatch):
    pytest.importorskip("sacrebleu")
    _archive(tmp_path, _PAIRS)
    config = replace(attention_config.PRESETS["tuned"], pairs=2, test_pairs=1, validation_pairs=1,
                     vocabulary=50, width=8, heads=2, layers=1, batch=4, updates=1)  # fmt: skip
    tried, trained = [], attention._trained
    monkeypatch.setattr(
        attention, "_trained", lambda *given: tried.append(given[-1]) or trained(*given)
    )
    done = Trials("title", {})
    done.add("softmax", 0, {"choice": 2})
    figures = attention.trial("softmax", 1, config, Setting(tmp_path), done)
    assert figures["choice"] == 2
    assert tried == [attention_config.CANDIDATES["softmax"][2]]
    attention.trial("top-k, soft", 0, config, Setting(tmp_path), done)
    assert tried[1:] == list(attention_config.CANDIDATES["top-k"])


def _kept(trials, folder):
    trials.write(folder / "x.json")
    return folder / "x.json"


def test_softmax_starts_with_its_temperature():
    config = replace(attention_config.PRESETS["quick"], width=8, heads=2, layers=1)
    built = []
    for temperature in (1.0, 0.5):
        torch.manual_seed(0)
        candidate = attention_config.Candidate(temperature=temperature)
        built.append(Translator(config, 9, 9, None, candidate).encoder.layers[0].self_attn)
    plain, sharp = (attend.in_proj_weight for attend in built)
    assert torch.allclose(sharp[:8], 2 * plain[:8])
    assert torch.equal(sharp[8:], plain[8:])
