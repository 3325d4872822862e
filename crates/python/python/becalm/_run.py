"""Stored runs, and their tables."""

from __future__ import annotations

import json
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native, _values
from ._values import Cpus, Path

if TYPE_CHECKING:
    from ._document import Document


def open(path: Path) -> Run:
    """Opens a recording: the folder that ``becalm record`` or ``becalm observe`` wrote, with or without its ending ``.becalm``.

    Documents are read at once, tables when they are asked for. A recording in summary form has no tables: :func:`becalm.report`
    and the other functions take its path.

    >>> run = becalm.open("busy")
    >>> run.documents[0]["node"], [cpu["cpu"] for cpu in run.documents[0]["cpus"]]
    ('node1', [0, 1])
    """
    return Run(path)


class Table:
    """A table of a run. Its columns lie in memory once, and are read where they are.

    Whatever knows the Arrow PyCapsule interface takes it as it is::

        polars.DataFrame(table)      pyarrow.table(table)
        pandas.DataFrame.from_arrow(table)      duckdb.sql("FROM table")

    A name gives a column as a NumPy array that cannot be written to. Numbers are not copied; flags and names are, as Arrow packs
    them in a way that NumPy does not have.

    >>> detours = becalm.open("busy").detours()
    >>> len(detours), detours["duration_ns"].dtype, detours["duration_ns"].max()
    (5000, dtype('int64'), np.int64(706700))
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return self._native.names

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, name: str) -> np.ndarray:
        column = self._native.column(name)
        found = np.asarray(column)
        if column.content == "flag":
            return np.unpackbits(found, bitorder="little", count=len(column)).view(bool)
        if column.content == "name":
            return np.array(column.values, dtype=object)[found] if len(column.values) else np.array([], dtype=object)
        return found

    def keys(self, name: str) -> tuple[np.ndarray, list[str]]:
        """A column of names as a key for each row, which is not copied, and the name for each key.

        >>> keys, names = becalm.open("busy").activities().keys("source")
        >>> np.bincount(keys)[names.index("tick")]
        np.int64(4950)
        """
        column = self._native.column(name)
        if column.content != "name":
            raise KeyError(f"the column '{name}' has no names")
        return np.asarray(column), column.values

    def arrow(self, name: str) -> _native.Column:
        """A column that Arrow reads where it is, as by ``pyarrow.array`` or ``polars.Series``."""
        return self._native.column(name)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._native.__arrow_c_array__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"<table of {len(self):,} rows: {', '.join(self.names)}>"


class Run:
    """A stored run, open for reading."""

    def __init__(self, path: Path) -> None:
        self._native = _native.StoredRun(path)
        self._documents: list[dict[str, Any]] | None = None

    @property
    def path(self) -> FilePath:
        """The folder in which it is."""
        return FilePath(self._native.path)

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The documents of its nodes, sorted by name: how it was measured, on what, and what was lost. Times in them are nanoseconds
        where their names end in ``_ns``."""
        if self._documents is None:
            self._documents = json.loads(self._native.documents())
        return self._documents

    @property
    def nodes(self) -> list[str]:
        """The names of its nodes."""
        return [document["node"] for document in self.documents]

    def detours(self, *, node: str | None = None, cpus: Cpus | None = None) -> Table:
        """Its detours, node after node and segment after segment; within a segment CPU after CPU, in order of time.

        Columns: ``node``; ``cpu``; ``detour``, its number on its CPU from 0 on; ``start_ns``, since the origin of the run;
        ``duration_ns``; ``incomplete``, whether events of the kernel were lost meanwhile.

        >>> run = becalm.open("busy")
        >>> run.detours(cpus="1").names
        ['node', 'cpu', 'detour', 'start_ns', 'duration_ns', 'incomplete']
        """
        return Table(self._native.detours(node=node, cpus=_values.cpus(cpus)))

    def activities(self, *, node: str | None = None, cpus: Cpus | None = None) -> Table:
        """What ran in its detours (or samples), in the same order. ``(node, cpu, detour)`` says in which one.

        Columns: ``node``; ``cpu``; ``detour``; ``start_ns``, since the origin of the run; ``self_ns``, its own time without that of
        what interrupted it; ``kind``; ``source``; ``detail``.
        """
        return Table(self._native.activities(node=node, cpus=_values.cpus(cpus)))

    def samples(self, *, node: str | None = None, cpus: Cpus | None = None) -> Table:
        """The samples of a run of ``becalm work``; none of other runs.

        Columns: ``node``; ``cpu``; ``sample``, its number on its CPU; ``start_ns``; ``duration_ns``; ``work``, the iterations done;
        ``incomplete``.
        """
        return Table(self._native.samples(node=node, cpus=_values.cpus(cpus)))

    def threads(self, *, node: str | None = None) -> Table:
        """The threads of a recording of ``becalm observe``, those that waited longest first.

        Columns: ``node``; ``thread``, its number in :meth:`stays`, or -1 without the trace of the kernel; ``tid``; ``process``;
        ``name``; ``command``; ``cgroup``; ``rank``, -1 outside of a job; ``start_ns``; ``wall_ns``; and the parts of it, of which
        ``ran_ns``, ``waited_ns``, ``asleep_ns`` and ``unknown_ns`` add up to it; ``switches``.

        >>> threads = becalm.open("observed").threads()
        >>> threads["name"][0], threads["waited_ns"][0]
        ('solver', np.int64(29850000))
        """
        return Table(self._native.threads(node=node))

    def stays(self, *, node: str | None = None) -> Table:
        """The parts of the lives of observed threads, in the order of their ends. Those of a thread follow each other without a gap.

        Columns: ``node``; ``thread``; ``cpu``; ``start_ns``, since the origin of the recording; ``duration_ns``; ``state``: ``ran``,
        ``on_the_way``, ``queued``, ``quota``, ``asleep``, ``stopped`` or ``unknown``; ``why`` it started; ``context``, the place;
        ``waker``, the thread that woke it, or -1.
        """
        return Table(self._native.stays(node=node))

    def takers(self, *, node: str | None = None) -> Table:
        """The takers of the CPU while observed threads waited, the most costly of a node first.

        Columns: ``node``; ``kind``; ``source``; ``owner``; ``ns``, the time; ``count``; ``longest_ns``; ``process``, -1 if it is not one
        process; ``command``; ``cgroup``.

        >>> takers = becalm.open("observed").takers()
        >>> takers["source"][0], takers["ns"][0]
        ('grem1', np.int64(27350000))
        """
        return Table(self._native.takers(node=node))

    def report(self, **options: Any) -> Document:
        """:func:`becalm.report` of this run."""
        from ._ask import report

        return report(self, **options)

    def sources(self, **options: Any) -> Document:
        """:func:`becalm.sources` of this run."""
        from ._ask import sources

        return sources(self, **options)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"<run {self.path}: {', '.join(self.nodes)}>"
