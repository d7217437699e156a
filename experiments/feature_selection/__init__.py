"""Which 50 of 784 pixels to look at: k-hot sampling, section 4, table 3."""
