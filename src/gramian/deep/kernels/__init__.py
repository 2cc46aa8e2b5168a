"""The update of a MinAtar run on a CPU as one numba kernel, which runs beside the interpreter and not in it.

| module | what it does |
| --- | --- |
| :mod:`.matrices` | the two matrix products of a chain rule |
| :mod:`.convolution` | a convolution of pictures that are nearly empty, forward and backward |
| :mod:`.penalties` | the penalties of the arms and their gradients |
| :mod:`.update` | the update that these make up |

They come with numba, and are loaded where a MinAtar run learns (`gramian.deep.compiled_update`).
"""
