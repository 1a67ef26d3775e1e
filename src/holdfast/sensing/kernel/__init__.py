"""Machine code for CPUs, compiled by numba, that XLA calls within its own programs.

Only what XLA's compiler does badly is here: products of small matrices together with what is computed between them.
Modules of this package import numba; `fused.available` says whether that makes sense.
"""
