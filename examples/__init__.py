"""Examples: `python -m examples.NAME`, from the root of a checkout; --help says what each shows."""
