"""How many pixels to look at: k-hot sampling, section 2.3, figure 5."""
