"""Which operators a law is about."""


def binds(*operators):
    """Marks a law that is not for all of them."""

    def mark(law):
        law.operators = operators
        return law

    return mark


_ORDERINGS = ("soft_rank", "soft_sort", "soft_permutation", "soft_quantile")
_SUMS = ("fsum", "fsum_inverse")

#: Operators whose results can be told from the scores alone.
orderings = binds(*_ORDERINGS)

#: The sum of which they are made, and its inverse.
sums = binds(*_SUMS)

#: Laws for which it does not matter which of these.
orderings_and_sums = binds(*_ORDERINGS, *_SUMS)
