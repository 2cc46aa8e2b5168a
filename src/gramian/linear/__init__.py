"""The linear half of the paper: regression, TD(0), Q-learning on Mountain Car, and its propositions.

`Learner` takes one step at a time on features that the caller brings; `Arm` says how it learns; `TileCoding` makes
sparse features. The experiments run whole sweeps inside compiled kernels: see `gramian.linear.regression`,
`gramian.linear.mountain_car` and `gramian.linear.theory`.
"""

from gramian.linear.features import TileCoding
from gramian.linear.learner import Arm, Learner

__all__ = ["Arm", "Learner", "TileCoding"]
