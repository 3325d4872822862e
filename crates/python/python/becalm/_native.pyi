"""The part of becalm that is made of its crates. What people call is in the package above it."""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, final

__all__ = [
    "VERSION",
    "BecalmError",
    "Column",
    "StoredRun",
    "Table",
    "UsageError",
    "compare",
    "flush_spans",
    "forget_spans",
    "law",
    "predict",
    "report",
    "sources",
    "span",
]

_T = TypeVar("_T")

VERSION: str

class BecalmError(Exception):
    """Raised if an operation fails."""

class UsageError(BecalmError):
    """Raised for arguments that are invalid or contradict each other."""

@final
class Column:
    """A column of a table."""

    @property
    def content(self) -> str: ...
    @property
    def values(self) -> list[str]: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __len__(self) -> int: ...

@final
class Table:
    """A table of a run."""

    @property
    def names(self) -> list[str]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...
    def column(self, name: str) -> Column: ...

@final
class StoredRun:
    """A bundle of recordings."""

    @property
    def path(self) -> Path: ...
    @property
    def is_work(self) -> bool: ...
    def __new__(cls, path: str | PathLike[str]) -> StoredRun: ...
    def documents(self) -> str: ...
    def detours(self, *, node: str | None, cpus: Sequence[int] | None) -> Table: ...
    def samples(self, *, node: str | None, cpus: Sequence[int] | None) -> Table: ...
    def activities(self, *, node: str | None, cpus: Sequence[int] | None) -> Table: ...
    def threads(self, *, node: str | None) -> Table: ...
    def stays(self, *, node: str | None) -> Table: ...
    def takers(self, *, node: str | None) -> Table: ...

def law(
    *,
    grains_ns: list[int],
    delays_ns: list[int],
    rates_hz: list[float] | None,
    probabilities: list[float] | None,
    ranks: list[int],
    tolerate: float | None,
) -> tuple[str, str]: ...
def predict(noises: list[str | dict[str, Any]], options: dict[str, Any]) -> tuple[str, str]: ...
def report(
    run: str, *, node: str | None, cpus: list[int] | None, with_self: bool, ranks: int | None
) -> tuple[str, str] | None: ...
def sources(
    run: str,
    *,
    node: str | None,
    cpus: list[int] | None,
    with_self: bool,
    per_cpu: bool,
    detour: str | None,
    longest: int | None,
    together_within_ns: int | None,
) -> tuple[str, str]: ...
def compare(
    before: list[str],
    after: list[str],
    *,
    side_before: tuple[str | None, list[int] | None],
    side_after: tuple[str | None, list[int] | None],
    with_self: bool,
) -> tuple[str, str]: ...

@final
class span:
    """A part of the program whose runs are written down."""

    def __new__(cls, name: str) -> span: ...
    def __enter__(self) -> span: ...
    def over(self, items: Iterable[_T]) -> Iterator[_T]: ...
    def __exit__(self, _kind: object = None, _value: object = None, _trace: object = None) -> None: ...

def flush_spans() -> None: ...
def forget_spans() -> None: ...
