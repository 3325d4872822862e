"""Spans: when parts of a program ran, for ``becalm explain``.

>>> import becalm
>>> with becalm.span("step"):  # doctest: +SKIP
...     train()

Each run of the block is a line of ``becalm-spans-PID.csv`` in the current directory, or of the file that the environment variable
``BECALM_SPANS`` names, where ``%p`` is replaced by the number of the process. A span costs little more than ``with`` on a lock;
make it once, and enter it as often as you like. Spans of one thread may contain each other.

In a loop, ``over`` is faster: each iteration is a span, without the time to get the next item.

>>> for batch in becalm.span("step").over(batches):  # doctest: +SKIP
...     train(batch)

An iteration that is left by ``break`` or an exception is no span.
"""

import atexit
import os

from ._native import flush_spans, forget_spans, span

__all__ = ["span"]

atexit.register(flush_spans)
os.register_at_fork(after_in_child=forget_spans)
