"""kvlab: compute, measure and judge the transformer KV cache.

Importing the package loads no torch; each room below is imported where it is used.
"""

__version__ = "0.1.0"
