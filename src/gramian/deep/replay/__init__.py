"""Replay memories."""
