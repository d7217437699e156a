"""Which operators a law is about."""


def binds(*operators):
    """Marks a law that is not for all of them."""

    def mark(law):
        law.operators = operators
        return law

    return mark


#: Operators whose results can be told from the scores alone.
orderings = binds("soft_rank", "soft_sort", "soft_permutation", "soft_quantile")
