"""Features that are learned without neighbours: PCA, an auto-encoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn

COMPONENTS = 50  #: as in SOFT top-k


@torch.no_grad()
def pca(images: Tensor, components: int = COMPONENTS) -> nn.Module:
    """The projection to the first principal components of these images."""
    rows = images.flatten(1).double()
    covariance = torch.cov(rows.T)
    most = torch.linalg.eigh(covariance).eigenvectors[:, -components:]
    project = nn.Linear(rows.shape[1], most.shape[1], bias=False).to(images.device)
    project.weight.copy_(most.T)
    return nn.Sequential(nn.Flatten(), project)


class AutoEncoder(nn.Module):
    """A network to features, and two layers back to the pixels."""

    def __init__(self, body: nn.Module, features: int, pixels: int) -> None:
        super().__init__()
        self.body = body
        self.back = nn.Sequential(nn.Linear(features, 256), nn.ReLU(), nn.Linear(256, pixels))

    def loss(self, images: Tensor) -> Tensor:
        """The mean square of what is wrong with a pixel."""
        return nn.functional.mse_loss(self.back(self.body(images)), images.flatten(1))
