"""Calls of every kernel; a file for each idea, named as in csrc/."""
