"""Returning freed memory to the operating system.

Owns when that is worth it. The C allocator keeps what was freed for later use, so a hub that once had thousands of
tools or sessions would look as large for good.
"""

from __future__ import annotations

import sys

_MANY = 500


class FreedMemory:
    """Notices when much has been freed, from how many large objects there are."""

    def __init__(self) -> None:
        self._peak = 0

    def is_much(self, objects: int) -> bool:
        """Whether many objects fewer exist than before; then counting begins again."""
        self._peak = max(self._peak, objects)
        if self._peak - objects < _MANY:
            return False
        self._peak = objects
        return True


def return_freed_memory() -> None:
    """Have the C allocator return what it can, where it knows how to (glibc)."""
    if sys.platform == "linux":
        import ctypes  # most hubs never need it

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
