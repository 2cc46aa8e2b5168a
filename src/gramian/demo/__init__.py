"""The first minutes: the paper's three experiments, reduced to what two cores do while one reads, and one page."""
