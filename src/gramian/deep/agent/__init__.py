"""The agent: networks, losses, penalties, optimiser and the pure update."""
