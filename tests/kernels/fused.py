"""Calls of the fused kernels, there and back."""


def vjp(kernel, upstream, scores, found, temperature, descending, *options, by_temperature=False):
    """The gradients of the scores and of the temperature, from what the forward call found."""
    kept = kernel.keep(scores, found, *options)
    return kernel.vjp(upstream, kept, temperature, descending, by_temperature, *options)
