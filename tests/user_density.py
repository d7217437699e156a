"""Densities as a user of the library would write them: Student's t with two degrees of freedom."""

import torch


class Student:
    """The least a user must give."""

    def __repr__(self):
        return "student"  # the same in every process

    def cdf(self, u):
        return 0.5 + 0.5 * u / torch.sqrt(2 + u * u)

    def pdf(self, u):
        return (2 + u * u) ** -1.5


class CompleteStudent(Student):
    """The same density with everything that a user may give."""

    def log_cdf(self, u):
        hypotenuse = torch.sqrt(2 + u * u)
        lower = -torch.log(hypotenuse) - torch.log(hypotenuse + u.abs())
        return torch.where(u < 0, lower, torch.log1p(-torch.exp(lower)))

    def quantile(self, p):
        return (2 * p - 1) / torch.sqrt(2 * p * (1 - p))
