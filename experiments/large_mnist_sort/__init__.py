"""Sorting numbers of four MNIST digits: LapSum, section 5.2, table 4."""
