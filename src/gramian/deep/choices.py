"""The words that settings choose from, without torch: the command line shows them at once."""

from typing import Literal

Execution = Literal["eager", "graphed", "compiled"]
"""How the work of a step reaches a GPU: operation by operation; as a CUDA graph; compiled, and then as a CUDA graph."""
HeadKind = Literal["scalar", "categorical", "quantile", "implicit"]
"""See `gramian.deep.agent.heads`."""
TDLoss = Literal["huber", "squared"]
"""Of the scalar head."""
