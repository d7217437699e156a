"""Top-k classification: which loss gives the best top-1 and top-5 accuracy on real data.

data.py       digits, and city names with their countries
candidates.py which losses, p_k and temperatures are compared
training.py   one run: a small network, one loss, one seed
report.py     the table, the plot, and what the papers found
__main__.py   all of it, with progress: python -m experiments.topk_classification
"""
