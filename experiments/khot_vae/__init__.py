"""Variational autoencoders with k-hot codes: k-hot sampling, section 4, table 4."""
