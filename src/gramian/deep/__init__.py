"""Deep Q-learning with decorrelated features: a population of runs trained at once."""
