"""One trial: train on digits, look at others on the way, judge by those of the test."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import torch
from torch import Tensor

from experiments.data.idx import Images
from experiments.large_mnist_sort.config import Config
from experiments.large_mnist_sort.criteria import Criterion, criterion
from experiments.large_mnist_sort.model import Scorer, hits
from experiments.large_mnist_sort.numbers import Digits, lists, places
from experiments.trials import Figures

_HELD = 5_000  #: training digits that only the curves are made of
_AT_ONCE = 100  #: lists that are judged together


@dataclass
class Run:
    """A network that learns to sort lists of one size."""

    config: Config
    size: int
    method: str
    images: Images

    def __post_init__(self) -> None:
        config, images = self.config, self.images
        whole = Digits.shrunk(images.images, images.labels, config.shrink)
        held = min(_HELD, len(images.labels) // 4)
        self.digits, self.others = whole.part(slice(held, None)), whole.part(slice(held))
        self.device = images.labels.device
        self.loss_of: Criterion = criterion(self.method, self.size, config).to(self.device)
        height, width = whole.images.shape[1:]
        scorer = Scorer(config, height, config.digits * width, self.loss_of.outputs)
        self.model = scorer.to(self.device)

    def figures(self) -> Figures:
        curves = self._train()
        images = self.images
        test = Digits.shrunk(images.test_images, images.test_labels, self.config.shrink)
        whole, part = self._judge(test, self.config.test)
        temperature = torch.as_tensor(self.loss_of.temperature).item()
        return {"whole": whole, "places": part, "temperature": temperature, **curves}

    def _train(self) -> dict[str, list[float]]:
        config = self.config
        parameters = [*self.model.parameters(), *self.loss_of.parameters()]
        optimiser = torch.optim.Adam(parameters, lr=config.learning_rate)
        cycle = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, config.learning_rate, total_steps=config.steps
        )
        curves: dict[str, list[float]] = {
            f"curve_{key}": [] for key in ("step", "loss", "whole", "temperature")
        }
        recent: list[float] = []
        every = max(1, config.steps // config.looks)
        for step in range(1, config.steps + 1):
            loss = self._loss()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            cycle.step()
            recent.append(loss.item())
            if step % every == 0:
                look = self._look(step, statistics.mean(recent))
                for key, value in look.items():
                    curves[key].append(value)
                recent.clear()
        return curves

    def _loss(self) -> Tensor:
        config = self.config
        pictures, numbers = self.digits.draw(config.images, config.digits)
        index = lists(config.images, self.size, config.regroup, self.device)
        return self.loss_of(self.model(pictures)[index], places(numbers[index]))

    def _look(self, step: int, loss: float) -> dict[str, float]:
        """With random numbers of its own: looking does not change what is learned."""
        with torch.random.fork_rng([]):
            torch.manual_seed(step)
            whole, _ = self._judge(self.others, self.config.validation)
        temperature = torch.as_tensor(self.loss_of.temperature).item()
        return {
            "curve_step": step,
            "curve_loss": loss,
            "curve_whole": whole,
            "curve_temperature": temperature,
        }

    @torch.no_grad()
    def _judge(self, digits: Digits, count: int) -> tuple[float, float]:
        """Shares of whole orders and of places that are right."""
        self.model.eval()
        self.loss_of.eval()
        whole, part = [], []
        for start in range(0, count, _AT_ONCE):
            shape = (min(_AT_ONCE, count - start), self.size)
            pictures, numbers = digits.draw(shape[0] * shape[1], self.config.digits)
            found = self.loss_of.found(self.model(pictures).view(*shape, -1))
            right = hits(found, self.loss_of.aim(places(numbers.view(shape))))
            whole.append(right[0])
            part.append(right[1])
        self.model.train()
        self.loss_of.train()
        return torch.cat(whole).mean().item(), torch.cat(part).mean().item()
