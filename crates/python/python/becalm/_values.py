"""Arguments as the native part takes them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Union

import numpy as np

from ._native import UsageError

#: One whole number or many: an ``int``, a sequence of them, a NumPy array.
Ints = Union[int, Sequence[int], np.ndarray]
#: One number or many.
Floats = Union[float, Sequence[float], np.ndarray]
#: CPUs: a number, several, or a text as on the command line, like ``"0-3,8"``.
Cpus = Union[int, str, Iterable[int]]
#: Where something is stored.
Path = Union[str, "os.PathLike[str]"]


def ints(name: str, values: Ints, *, at_least: int | None = 0) -> list[int]:
    """Whole numbers, none of them below a limit."""
    array = np.atleast_1d(np.asarray(values))
    if array.ndim != 1 or array.size and array.dtype.kind not in "iu":
        raise UsageError(f"{name} takes whole numbers, one or a list of them, and not {values!r}")
    if at_least is not None and array.size and array.min() < at_least:
        raise UsageError(f"{name} takes numbers from {at_least} on, and not {array.min()}")
    return [int(value) for value in array.tolist()]


def floats(name: str, values: Floats) -> list[float]:
    """Numbers."""
    array = np.atleast_1d(np.asarray(values))
    if array.ndim != 1 or array.size and array.dtype.kind not in "iuf":
        raise UsageError(f"{name} takes numbers, one or a list of them, and not {values!r}")
    return [float(value) for value in array.tolist()]


def texts(values: str | Iterable[str]) -> list[str]:
    """Names, one or several."""
    return [values] if isinstance(values, str) else [str(value) for value in values]


def cpus(values: Cpus | None) -> list[int] | None:
    """The numbers of CPUs; none where all are meant."""
    if values is None or isinstance(values, int):
        return None if values is None else ints("cpus", values)
    if not isinstance(values, (str, Iterable)):
        raise UsageError(f"{values!r} is not a list of CPUs: write numbers and ranges of them, like 0-3,8")
    if not isinstance(values, str):
        return ints("cpus", list(values))
    numbers: list[int] = []
    for part in values.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()) or part.endswith("-"):
            raise UsageError(f"'{values}' is not a list of CPUs: write numbers and ranges of them, like 0-3,8")
        begin, end = int(first), int(last or first)
        if end < begin or end >= 1 << 20:
            raise UsageError(f"'{values}' is not a list of CPUs: {part} goes down, or is too large")
        numbers.extend(range(begin, end + 1))
    return numbers


def path(value: Any) -> str:
    """The path of a run, which may be an open one."""
    return str(os.fspath(getattr(value, "path", value)))


def column(name: str, values: Any) -> np.ndarray:
    """An array of ``int64`` in one piece, without a copy where it is one."""
    array = np.asarray(values)
    if array.ndim != 1 or array.size and array.dtype.kind not in "iu":
        raise UsageError(f"{name} takes an array of whole numbers of nanoseconds, of one dimension, and not one of {array.dtype} and {array.ndim} dimensions")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise UsageError(f"{name} takes nanoseconds up to {np.iinfo(np.int64).max}")
    return np.ascontiguousarray(array, dtype=np.int64)
