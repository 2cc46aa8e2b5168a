"""Trained runs: load, evaluate, list, record."""
