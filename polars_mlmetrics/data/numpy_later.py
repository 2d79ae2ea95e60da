"""NumPy, imported when a part of it is first used: to import it takes half as long as to import this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

__all__ = ["Numbers", "np"]

Numbers: TypeAlias = "NDArray[Any]"

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:

    class _NumPy:
        def __getattr__(self, name: str) -> Any:
            import numpy

            return getattr(numpy, name)

    np = _NumPy()
