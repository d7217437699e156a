"""Font families of npm, and which characters are drawn of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from experiments.data.archives import Archive

_VERSION = "5.3.0"  # of all the packages @fontsource/FAMILY


@dataclass(frozen=True)
class Script:
    """Characters, the families that have them, with the SHA-256 of their packages, and weights."""

    subset: str  #: as npm calls the files
    characters: tuple[str, ...]
    weights: tuple[int, ...]
    families: Mapping[str, str]
    size: float  #: of the font, as a share of the image's side
    baseline: float  #: how far down the image; with that size, nothing is cut off

    def files(self, family: str) -> tuple[str, ...]:
        return tuple(f"{family}-{self.subset}-{weight}-normal.woff2" for weight in self.weights)

    @property
    def every_file(self) -> tuple[str, ...]:
        return tuple(file for family in self.families for file in self.files(family))

    @property
    def archives(self) -> tuple[Archive, ...]:
        return tuple(
            Archive(f"npm:@fontsource/{family}@{_VERSION}", digest, self.files(family))
            for family, digest in self.families.items()
        )


def _latin() -> tuple[str, ...]:
    """What ASCII can print, and the letters with accents of Latin-1: 156."""
    accented = (c for c in range(0xC0, 0x100) if chr(c).isalpha())
    return tuple(map(chr, [*range(33, 127), *accented]))


def _kanji() -> tuple[str, ...]:
    """Level 1 of JIS X 0208, rows 16 to 47 of 94 cells, which EUC-JP numbers from 0xA0: 2,965."""
    cells = (bytes((0xA0 + row, 0xA0 + cell)) for row in range(16, 48) for cell in range(1, 95))
    decoded = (cell.decode("euc_jp", errors="ignore") for cell in cells)  # empty cells: ""
    return tuple(character for character in decoded if character)


_LATIN_FAMILIES = {
    "roboto": "77620f437249772e381698224ea1bddd01c985ecd60267a63ddc96b9eb9348f7",
    "open-sans": "95e6dd90f5860d0de22f791b6d802598743762c62e4894bfa26f80b1ea0cf3f5",
    "lato": "50db251f16e9a6c35fe0177b4692b7ec78478b9734c9272d980a75343638aa5c",
    "montserrat": "919dce59bbe45ace8a517c1e9de5076282bfeb97e8aa8f5f2dc989451c14c7cb",
    "merriweather": "348f20a775e50a50b508ab6660771df6905ab2ea695c6c2a8df889c5cceec42f",
    "playfair-display": "564e61951ecc3e962793cd50395f718cda6350cb934f9000dbe0139c768dc023",
    "source-code-pro": "2cf1e4c495edacec6b2619362571ce84a2768a7d995fbdb66f93309d3edbb9b8",
    "ubuntu": "d69a09b1f2dcf4e470da62fd9c767175d957eb77d1e56767c94357abd3d48287",
    "eb-garamond": "2e61af0740104953d4fc5cb52a8c6de257ae6d83a4a89e0fd4be2f6132fd40d9",
    "raleway": "d5dc5cb4563286e45c5b832b0718fa36d84148405cf6f5d1903615a74d253ea8",
    "inconsolata": "d34e446cb20ca819c3bc2795ff7dd1f071a4a7a6f8a38518af3b47144b5e06d9",
    "oswald": "27bf46420288bb65bd186638cde54686aa8f9d5dc975b1d597dfe81a7dd472cb",
}
_JAPANESE_FAMILIES = {
    "kosugi": "97c3500eb0c2de2c5b9c34280018159f7c04295b11416b5fac83eb883a6437b5",
    "kosugi-maru": "ce8295c0e9c13b50b25867e47f3a78cdb4464a27a82eb5a6f89b7eff484a15ab",
    "zen-antique": "26f28d7bd1b4aaca6dded4d6e7e56e5fd2f5b5635e670a7d56e319da6bfd98ca",
    "dotgothic16": "5977ee64b27320f4cc22017b956c5271f2152d307e294771970d6b19cdf6b3dd",
    "stick": "ef2d959b5b974e8b8334f6faa4b380c6c90b91aae9b509c01733a7ce4616a7c7",
    "rocknroll-one": "aa274450543b7e1bfc0965cda9100a3a6bef26271d5b4c9ad1dc7f05118aea51",
    "dela-gothic-one": "2344fa5f9b2bb0b152013d98073a01006cffc4eac2d638586df6b0805e4d9474",
    "mochiy-pop-one": "e51bf9bf1885021eadc9ad3178f1dd7a0fa98e88b69be71ca8f13dc177ca976e",
    "zen-kurenaido": "f8a7fb316996b6d8a7daa9faf3a5f8baab1622cdca9e2aec4af807036ddb2fa4",
    "reggae-one": "88f67b908e40afc364045c8e18f69cf99727f358408fab86dc447b445caa6d4e",
    "yusei-magic": "f752e070375427a719f719629f7af78b64d24a6fd7bea7041d8b6b72e2bcc6a0",
    "potta-one": "ba4b54bac2024f7534d62759974dcb3e1b2e40585cb03cea06817699d35c10e9",
}
SCRIPTS = {
    "glyphs": Script("latin", _latin(), (400, 700), _LATIN_FAMILIES, 0.62, 0.74),
    "kanji": Script("japanese", _kanji(), (400,), _JAPANESE_FAMILIES, 0.75, 0.72),
}
