"""The linear half of the paper: regression, TD(0), Q-learning on Mountain Car, and its propositions."""
