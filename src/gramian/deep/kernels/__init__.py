"""Work of a CPU as numba kernels, which run beside the interpreter and not in it.

| module | what it does |
| --- | --- |
| :mod:`.matrices` | the two matrix products of a chain rule |
| :mod:`.convolution` | a convolution of pictures that are nearly empty, forward and backward |
| :mod:`.penalties` | the penalties of the arms and their gradients |
| :mod:`.update` | the update of a MinAtar run, which these make up |
| :mod:`.pictures` | frames of Atari |
| :mod:`.tiles` | convolutions of Atari with few products |

They come with numba, and are loaded where a MinAtar run learns (`gramian.deep.compiled_update`), the last two where
Atari is played beside a GPU (`gramian.deep.environments.emulator`) and where it is learned on a CPU
(`gramian.deep.winograd`), whose actors need the first (`gramian.deep.acting`).
"""
