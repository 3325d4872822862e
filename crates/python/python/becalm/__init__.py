"""becalm: finds, explains, predicts and removes the noise that an operating system makes.

Noise is the time that a thread loses although it owns its CPU: to ticks, interrupts, kernel threads, daemons and the
hypervisor. One such loss is a *detour*. This package opens what ``becalm record`` stored, records itself, and computes what
the commands of the program do, with the same documents:

>>> import becalm
>>> law = becalm.law(grain_ns=1_000_000, delay_ns=50_000, rate_hz=10, ranks=[64, 4096])
>>> law.column("slowdown_ratio").round(4)
array([1.0237, 1.05  ])

Units are in the names: ``_ns`` is nanoseconds, ``_hz`` a number in a second, ``_ratio`` a share or a factor as a plain number.
A recording opens as a :class:`Run`, whose tables Polars, pandas, PyArrow and DuckDB read without copying a column.

An operation that fails raises :class:`BecalmError`, and arguments that are invalid or contradict each other raise :class:`UsageError`.
"""

from ._ask import compare, law, predict, report, sources
from ._document import Document
from ._native import VERSION as __version__
from ._native import BecalmError, UsageError
from ._record import LimitExceededError, program, record
from ._run import Run, Table, open
from ._spans import span

__all__ = [
    "BecalmError",
    "Document",
    "LimitExceededError",
    "Run",
    "Table",
    "UsageError",
    "__version__",
    "compare",
    "law",
    "open",
    "predict",
    "program",
    "record",
    "report",
    "sources",
    "span",
]
