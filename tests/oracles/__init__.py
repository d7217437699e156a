"""Slow, obvious, independent answers. Nothing here imports softorder or torch."""
