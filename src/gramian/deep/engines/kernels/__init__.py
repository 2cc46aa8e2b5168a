"""Work of a CPU as numba kernels, which run beside the interpreter and not in it.

| module | what it does |
| --- | --- |
| :mod:`.matrices` | the two matrix products of a chain rule |
| :mod:`.convolution` | a convolution of pictures that are nearly empty, forward and backward |
| :mod:`.penalties` | the penalties of the arms and their gradients |
| :mod:`.update` | the update of a MinAtar run, which these make up |
| :mod:`.replay` | what a replay stores and gives |
| :mod:`.pictures` | frames of Atari |
| :mod:`.vectors` | numbers that a processor works on together, as values |
| :mod:`.products` | matrix products with their sums in registers |
| :mod:`.tiles` | convolutions of Atari with few products |
| :mod:`.hidden` | the hidden layer of Atari's networks |

They come with numba, and are loaded where a MinAtar run learns (`engines.compiled_update`), where Atari is played
beside a GPU, `pictures` alone (`gramian.deep.envs.emulator`), and where Atari is learned on a CPU, those after
it (`gramian.deep.engines.winograd`); `replay` beside both learners (`gramian.deep.replay.host`).
"""
