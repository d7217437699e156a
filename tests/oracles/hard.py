"""The limit of temperature to zero, by walking down the distinct scores of one row."""


def topk(scores, k):
    """Every group of equal scores takes what is left of k, shared equally, at most one each."""
    result, left = [0.0] * len(scores), k
    for value in sorted(set(scores), reverse=True):
        group = [i for i, score in enumerate(scores) if score == value]
        share = min(1.0, left / len(group))
        for i in group:
            result[i] = share
        left = max(0.0, left - len(group))
    return result
