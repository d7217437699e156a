"""Losses of lists for recommendation: MovieLens-100k."""
