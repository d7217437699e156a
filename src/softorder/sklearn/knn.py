"""SoftKNNClassifier."""

from __future__ import annotations

import copy
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from softorder import _check
from softorder.nn import SoftKNN
from softorder.sklearn._training import Stopping, Trainer


class SoftKNNClassifier(ClassifierMixin, BaseEstimator):
    """k nearest neighbours in a space that is learned for it, as a scikit-learn classifier.

    A network is trained through `so.nn.SoftKNN`: in every batch each item is classified by the
    others, and the soft neighbours of another class are the loss. Predictions are those of the
    hard k nearest neighbours among all the training items, in the space of the network. Scale the
    inputs first, as for any network: `make_pipeline(StandardScaler(), SoftKNNClassifier())`.

    Args:
        k: how many neighbours.
        network: an nn.Module from float inputs (N, n_features) to features; a copy of it is
            trained. None: one hidden layer, as `hidden` and `features` say.
        hidden: the width of the hidden layer of the default network.
        features: the number of features that it ends with.
        method: as in `so.soft_topk`.
        temperature: of the soft neighbours; "auto" calls `SoftKNN.calibrate` on the first items.
        learnable_temperature: make it a parameter.
        distance: "euclidean" or "squared".
        loss: "share" or "log_share", see `so.nn.SoftKNN`.
        epochs: how often `fit` goes through the items, at most.
        batch_size: how many items a step has; they are each other's queries and templates.
        learning_rate: of Adam.
        weight_decay: of Adam.
        early_stopping: hold out a part of the items, stop when their accuracy does not rise any
            more, and go back to the best epoch. The held-out items are templates in the end, too.
        validation_fraction: how large that part is.
        patience: how many epochs may pass without a better one.
        random_state: seed of the initial network, the batches and the held-out part.
        device: where torch computes.
        verbose: show a progress bar.

    Attributes:
        classes_: the labels.
        n_features_in_: the number of inputs.
        n_iter_: how many epochs were run.
        model_: the trained `so.nn.SoftKNN`, with the templates.
        loss_curve_: the mean loss of every epoch.
        validation_scores_: the accuracy of every epoch, with early stopping.

    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import softorder as so
    >>> X, Xt, y, yt = train_test_split(*load_wine(return_X_y=True), random_state=0)
    >>> model = so.sklearn.SoftKNNClassifier(k=3, epochs=20, random_state=0)
    >>> accuracy = make_pipeline(StandardScaler(), model).fit(X, y).score(Xt, yt)
    >>> accuracy > 0.9
    True
    """

    def __init__(
        self,
        k: int = 5,
        *,
        network: nn.Module | None = None,
        hidden: int = 128,
        features: int = 32,
        method: str | object = "laplace",
        temperature: float | str = "auto",
        learnable_temperature: bool = False,
        distance: str = "euclidean",
        loss: str = "share",
        epochs: int = 100,
        batch_size: int = 256,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        random_state: int | np.random.RandomState | None = None,
        device: str = "cpu",
        verbose: bool = False,
    ) -> None:
        self.k = k
        self.network = network
        self.hidden = hidden
        self.features = features
        self.method = method
        self.temperature = temperature
        self.learnable_temperature = learnable_temperature
        self.distance = distance
        self.loss = loss
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> SoftKNNClassifier:
        """Train a new network on these items; they become the templates."""
        self._check_options()
        data, labels = self._training_data(X, y, reset=True)
        self.classes_ = np.unique(labels)
        x, codes = self._tensors(data, labels)
        self._start(x)
        stopping = None
        if self.early_stopping:
            stopping = Stopping(self.validation_fraction, self.patience)
        self._trainer.fit(x, codes, self.epochs, stopping, self.verbose)
        return self._finish(x, codes)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> SoftKNNClassifier:
        """One epoch on these items, which then join the templates.

        Args:
            X: the items.
            y: their labels.
            classes: all labels that will ever come; needed by the first call.
        """
        self._check_options()
        first = not hasattr(self, "model_")
        data, labels = self._training_data(X, y, reset=first)
        if first:
            _check.needed("classes", classes, "in the first call of partial_fit")
            self.classes_ = np.unique(classes)
        unknown = np.setdiff1d(labels, self.classes_)
        _check.neighbours.known_labels(unknown.tolist(), self.classes_.tolist())
        x, codes = self._tensors(data, labels)
        if first:
            self._start(x)
        else:
            _check.neighbours.resumable(hasattr(self, "_trainer"))
        self._trainer.epoch(x, codes)
        if not first:
            x, codes = torch.cat([self._inputs, x]), torch.cat([self._codes, codes])
        return self._finish(x, codes)

    def predict(self, X: Any) -> np.ndarray:
        """The label of most of the k nearest templates."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The share of every class among the k nearest templates."""
        check_is_fitted(self)
        shares = self.model_.predict_proba(self._inputs_of(X)).cpu().numpy()
        table = np.zeros((len(shares), len(self.classes_)))
        table[:, : shares.shape[1]] = shares
        return table

    def kneighbors(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Distances and indices (into the training items) of the k nearest templates."""
        check_is_fitted(self)
        found, indices = self.model_.kneighbors(self._inputs_of(X))
        return found.cpu().numpy(), indices.cpu().numpy()

    def save(self, path: str | Path) -> None:
        """Write everything that prediction needs to a file that holds no code."""
        check_is_fitted(self)
        options = self.get_params(deep=False)
        network = options.pop("network")
        options["random_state"] = None
        content = {
            "options": options,
            "own_network": network is not None,
            "state": self.model_.state_dict(),
            "classes": self.classes_.tolist(),
            "dtype": self.classes_.dtype.str,
            "n_features": self.n_features_in_,
            "losses": self.loss_curve_,
            "scores": self.validation_scores_,
        }
        torch.save(content, path)

    @classmethod
    def load(cls, path: str | Path, network: nn.Module | None = None) -> SoftKNNClassifier:
        """Read what `save` wrote.

        It predicts, but cannot go on with partial_fit: the optimiser and the items are not saved.

        The file may come from anywhere: it runs no code, and what does not fit into it is refused.

        Args:
            path: the file.
            network: a module of the same kind, if one was given to the constructor.
        """
        content = _read(path)
        if content["own_network"]:
            _check.needed("network", network, "to load a model with a network of its own")
        model = cls(network=network, **content["options"])
        model._check_options()
        if network is None:
            numbers = model.hidden * content["n_features"] + model.features * model.hidden
            _check.neighbours.held(path, numbers, content["state"])
        kind = np.dtype(content["dtype"])
        _check.neighbours.short(path, len(content["classes"]) * kind.itemsize)
        model.classes_ = np.array(content["classes"], dtype=kind)
        model.n_features_in_ = content["n_features"]
        model.model_ = model._new_model(content["n_features"])
        model.model_.load_state_dict(content["state"])
        model.loss_curve_, model.validation_scores_ = content["losses"], content["scores"]
        model.n_iter_ = len(model.loss_curve_)
        return model

    def _check_options(self) -> None:
        """What `SoftKNN` does not check."""
        for name, least in (("hidden", 1), ("features", 1), ("epochs", 1), ("patience", 1)):
            _check.count(name, getattr(self, name), least)
        _check.count("batch_size", self.batch_size, least=2)
        _check.flag("early_stopping", self.early_stopping)
        _check.share("validation_fraction", self.validation_fraction)
        if isinstance(self.temperature, str):
            _check.choice("temperature", self.temperature, ["auto"])

    def _training_data(self, X: Any, y: Any, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        x, labels = validate_data(self, X, y, dtype=np.float32, reset=reset)
        check_classification_targets(labels)
        _check.neighbours.samples(self.k, len(x))
        return x, labels

    def _inputs_of(self, X: Any) -> Tensor:
        x = validate_data(self, X, dtype=np.float32, reset=False)
        return torch.tensor(x, device=self.device)

    def _tensors(self, x: np.ndarray, labels: np.ndarray) -> tuple[Tensor, Tensor]:
        codes = np.searchsorted(self.classes_, labels)
        return torch.tensor(x, device=self.device), torch.tensor(codes, device=self.device)

    def _start(self, x: Tensor) -> None:
        random = check_random_state(self.random_state)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(random.randint(2**31)))
            self.model_ = self._new_model(x.shape[1])
        if self.temperature == "auto":
            self.model_.calibrate(x[: max(self.batch_size, self.k + 1)])
        self._trainer = Trainer(
            self.model_, self.learning_rate, self.weight_decay, self.batch_size, random
        )

    def _new_model(self, n_features: int) -> SoftKNN:
        network = copy.deepcopy(self.network)
        if network is None:
            network = nn.Sequential(
                nn.Linear(n_features, self.hidden),
                nn.ReLU(),
                nn.Linear(self.hidden, self.features),
            )
        model = SoftKNN(
            network,
            self.k,
            method=self.method,
            temperature=1.0 if isinstance(self.temperature, str) else self.temperature,
            learnable_temperature=self.learnable_temperature,
            distance=self.distance,
            loss=self.loss,
        )
        return model.to(self.device)

    def _finish(self, x: Tensor, codes: Tensor) -> SoftKNNClassifier:
        self._inputs, self._codes = x, codes
        self.model_.remember(x, codes)
        self.loss_curve_, self.validation_scores_ = self._trainer.losses, self._trainer.scores
        self.n_iter_ = len(self.loss_curve_)
        return self


_SAVED = (
    "options", "own_network", "state", "classes", "dtype", "n_features", "losses", "scores"
)  # fmt: skip


def _read(path: str | Path) -> dict[str, Any]:
    """A file from anywhere: it may neither run code nor become larger than it is."""
    if not zipfile.is_zipfile(path):
        _check.neighbours.saved(path, None, _SAVED)
    with zipfile.ZipFile(path) as archive:
        _check.neighbours.packed(path, {i.filename: i.file_size for i in archive.infolist()})
    content = torch.load(path, weights_only=True)
    _check.neighbours.saved(path, content, _SAVED)
    return dict(content)
