"""Tests that need several processes: see team.py."""
