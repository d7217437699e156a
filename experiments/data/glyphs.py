"""Characters, drawn from fonts: many look alike (0 and O; 1, l and I; 未 and 末)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from experiments.data.fonts import SCRIPTS, Script
from experiments.data.sources import locate

_MISSING = "\U000f0000"  #: for private use: no font here has it


def load(
    name: str,
    families: Iterable[str],
    folder: Path | None = None,
    fetch: bool = False,
    side: int = 24,
) -> tuple[Tensor, Tensor]:
    """Images (N, 1, side, side) in [0, 1], and the places of their characters among those of
    SCRIPTS[name], of these families in every weight.
    """
    script = SCRIPTS[name]
    found = locate(name, folder, fetch)
    drawn = [
        draw(found / file, side, script) for family in families for file in script.files(family)
    ]
    images, labels = zip(*drawn, strict=True)
    return torch.cat(images), torch.cat(labels)


def draw(path: Path, side: int, script: Script) -> tuple[Tensor, Tensor]:
    """The characters that the font has: what it lacks would look like its sign for that."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(str(path), round(script.size * side))
    lacking = bytes(font.getmask(_MISSING))
    images, labels = [], []
    for label, character in enumerate(script.characters):
        if bytes(font.getmask(character)) == lacking:
            continue
        picture = Image.new("L", (side, side))
        centre = (side / 2, script.baseline * side)
        ImageDraw.Draw(picture).text(centre, character, fill=255, font=font, anchor="ms")
        images.append(np.asarray(picture, np.float32) / 255)
        labels.append(label)
    pixels = np.array(images, np.float32).reshape(-1, 1, side, side)
    return torch.from_numpy(pixels), torch.tensor(labels, dtype=torch.long)
