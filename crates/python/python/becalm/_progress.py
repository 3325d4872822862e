"""How far a recording is, where somebody looks: on a terminal, or in a notebook."""

from __future__ import annotations

import os
import sys
from typing import Any

#: So many cells a bar has on a terminal.
CELLS = 30


class Progress:
    """Seconds that went by, of so many where that is known."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._said = ""

    def show(self, elapsed: float) -> None:
        """Shows how many seconds went by."""
        text = self._text(elapsed)
        if text != self._said:
            self._said = text
            self._put(text, elapsed)

    def end(self) -> None:
        """Takes away what was shown."""

    def _text(self, elapsed: float) -> str:
        of = "" if self._seconds is None else f" of {self._seconds:.3g} s"
        return f"recording, {elapsed:.0f} s{of}"

    def _share(self, elapsed: float) -> float:
        return 0.0 if not self._seconds else min(elapsed / self._seconds, 1.0)

    def _put(self, text: str, elapsed: float) -> None:
        """Nobody looks."""


class TerminalProgress(Progress):
    """One line on standard error, which is drawn again."""

    def _put(self, text: str, elapsed: float) -> None:
        done = round(self._share(elapsed) * CELLS)
        bar = "" if self._seconds is None else f" {'█' * done}{'░' * (CELLS - done)}"
        sys.stderr.write(f"\r\x1b[K{text}{bar}")
        sys.stderr.flush()

    def end(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class NotebookProgress(Progress):
    """A bar below the cell."""

    def __init__(self, seconds: float | None, display: Any, html: Any) -> None:
        super().__init__(seconds)
        self._html = html
        self._handle = display(html(""), display_id=True)

    def _put(self, text: str, elapsed: float) -> None:
        value = "" if self._seconds is None else f' value="{self._share(elapsed):.3f}"'
        self._handle.update(self._html(f"<progress{value}></progress> {text}"))

    def end(self) -> None:
        self._handle.update(self._html(""))


def progress_of(seconds: float | None) -> Progress:
    """What shows it here."""
    shell = sys.modules.get("IPython")
    kernel = None if shell is None else getattr(shell.get_ipython(), "kernel", None)
    if kernel is not None:
        from IPython.display import HTML, display

        return NotebookProgress(seconds, display, HTML)
    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return TerminalProgress(seconds)
    return Progress(seconds)
