"""Calls of the fused kernels, there and back."""


def vjp(kernel, upstream, scores, found, temperature, descending, *options, by_temperature=False):
    """The gradients of the scores and of the temperature, from what the forward call found."""
    kept = kernel.keep(scores, found, *options)
    return kernel.vjp(upstream, kept, temperature, descending, by_temperature, *options)


#: Laws about no scores, for which nothing is launched; about torch.func or a second derivative; or
#: with a temperature that learns: there plain torch serves, unless a kernel learns temperatures.
_PLAIN = (
    "empty",
    "differences",
    "forward_mode",
    "hessian",
    "vmap",
    "shared_temperature",
    "k_and_temperature",
    "a_common_shift_moves_values_only",
    "gradients_stay_finite_when_cold",
    "k_n_takes_everything",
    "k_zero_takes_nothing",
    "mass_moves_as_k_says",
)


def launches(law):
    """Whether a law calls the kernels of a method that learns no temperature by them."""
    return not any(words in str(law) for words in _PLAIN)
