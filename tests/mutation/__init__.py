"""Seeded defects that `make test` has to notice. A tool for developers: `make test-mutants`."""
