"""Training a population: settings, the loop, files and checkpoints."""
