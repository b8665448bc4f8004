"""How the kernel is compiled.

Without the lock (runs share the cores as threads), cached on disk, and without numba's reference counts: no array is
made or kept in the kernel, and counting references to its arguments took three quarters of the time.
"""

from __future__ import annotations

from typing import Any

from numba import njit

_jit: Any = njit

OUTER: Any = _jit(nogil=True, cache=True, error_model="numpy", _nrt=False)
"""Decorator of functions that are called."""

INNER: Any = _jit(nogil=True, cache=True, error_model="numpy", _nrt=False, forceinline=True)
"""Decorator of functions that dissolve in their callers."""
