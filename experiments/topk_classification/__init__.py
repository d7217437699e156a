"""Top-k classification: which loss gives the best top-1 and top-5 accuracy on real data.

data.py       a data set by its name, from
  tables.py     digits; city names with their countries
  writing.py    characters of fonts: Latin, kanji
  pictures.py   CIFAR
  features.py   ImageNet, the features of a trained network
splits.py     what a run needs of its data
candidates.py which losses, p_k and temperatures are compared
training.py   one run: a small network, one loss, one seed
tuning.py     the temperature of every loss
experiment.py all of it: softorder reproduce topk_classification
"""
