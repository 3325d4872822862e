"""Spans: when parts of a program ran, for ``becalm explain``.

>>> import becalm
>>> with becalm.span("step"):  # doctest: +SKIP
...     train()

Each run of the block is a line of ``becalm-spans-PID.csv`` in the current directory, or of the file that the environment variable
``BECALM_SPANS`` names, where ``%p`` is replaced by the number of the process. A span costs little more than ``with`` on a lock;
make it once, and enter it as often as you like. Spans of one thread may contain each other.
"""

import atexit
import os

from ._native import flush_spans, forget_spans, span

__all__ = ["span"]

atexit.register(flush_spans)
os.register_at_fork(after_in_child=forget_spans)
