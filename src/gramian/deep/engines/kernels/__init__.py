"""The kernels of `gramian.deep.engines.minatar` (numba): they run without the interpreter lock.

| module | what it does |
| --- | --- |
| :mod:`.update` | acting and the update of a MinAtar run, from the others |
| :mod:`.convolution` | a convolution of pictures that are nearly empty, forward and backward |
| :mod:`.matrices` | products of small matrices |
"""
