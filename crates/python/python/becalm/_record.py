"""Recording, by the program ``becalm``: what measures must not share a process with Python's threads and its lock."""

from __future__ import annotations

import datetime
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import IO

from . import _values
from ._native import BecalmError, UsageError
from ._progress import Progress, progress_of
from ._run import Run
from ._values import Cpus, Path

#: What the program puts before each of its messages.
PREFIX = "becalm: "


class LimitExceededError(BecalmError):
    """A recording was made, and a limit was exceeded. ``run`` is the recording."""

    run: Run

    def __init__(self, text: str, run: Run) -> None:
        super().__init__(text)
        self.run = run


def program() -> FilePath:
    """The program ``becalm`` that records: the one that this package brought, else the first in ``PATH``."""
    schemes = {sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")}
    for folder in sorted(path for path in schemes if path):
        found = FilePath(folder) / "becalm"
        if os.access(found, os.X_OK):
            return found
    in_path = shutil.which("becalm")
    if in_path is None:
        raise BecalmError("there is no program becalm, neither beside Python's own programs nor in PATH; install this package as a wheel")
    return FilePath(in_path)


def _environment() -> dict[str, str]:
    """That of the program: what it does is said by arguments, and by no defaults of its command line."""
    return os.environ | {"BECALM_CONFIG": ""}


def asked_program(words: Sequence[str]) -> str:
    """What the program prints, asked by these words."""
    done = subprocess.run([program(), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, env=_environment())
    if done.returncode == 0:
        return done.stdout
    raise _failure(done.returncode, done.stderr.splitlines())


def record(
    output: Path | None = None,
    *,
    cpus: Cpus | None = None,
    duration: float | str | None = None,
    detours: int | None = None,
    until_stopped: bool = False,
    threshold: str = "auto",
    sources: bool = True,
    max_detour: str | None = None,
    max_noise: float | str | None = None,
    node: str | None = None,
    command: Sequence[str] = (),
    options: Sequence[str] = (),
    progress: bool = True,
) -> Run:
    """Watches CPUs as a busy thread would, stores what interrupts them, and opens what was stored.

    The program ``becalm`` does so (:func:`program`), in a process of its own: what measures is not disturbed by this one. Sources are
    seen as far as the user may see them; all of them as root.

    ``duration`` is a number of seconds, or a text like ``"500ms"``; 10 s, where nothing says when it ends. ``detours`` ends a CPU's loop
    after so many, a ``command`` the recording when it ends. Without ``output`` it is stored as ``HOST-TIME.becalm`` in the current
    folder. ``options`` are further ones of ``becalm record``, as on its command line.

    With ``until_stopped``, Ctrl-C (or *interrupt* in a notebook) ends it and the run is returned. In any other recording it is stored as
    far as it came, too, before ``KeyboardInterrupt`` goes on; a note of that says where.

    Raises :class:`LimitExceededError` where a detour was longer than ``max_detour``, or a CPU lost more than ``max_noise`` of its time.
    """
    path = FilePath(output) if output is not None else _free_name(node or socket.gethostname())
    words = ["record", "--quiet", f"--output={path}", f"--threshold={threshold}"]
    chosen = _values.cpus(cpus)
    if chosen is not None:
        words.append("--cpus=" + ",".join(map(str, chosen)))
    if duration is not None:
        words.append(f"--duration={_duration(duration)}")
    for option, value in (("detours", detours), ("max-detour", max_detour), ("max-noise", max_noise), ("node", node)):
        if value is not None:
            words.append(f"--{option}={value}")
    words += ["--until-stopped"] if until_stopped else []
    words += [] if sources else ["--no-sources"]
    words += options
    if command:
        words += ["--", *command]
    # A session of its own: a terminal's Ctrl-C reaches this process alone, which passes it on.
    child = subprocess.Popen(
        [program(), *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True, env=_environment()
    )
    assert child.stderr is not None
    messages = _Messages(child.stderr)
    interrupted = _wait(child, progress_of(_seconds(duration, detours, until_stopped, command)) if progress else None)
    lines = messages.all()
    if child.returncode == 0 or (child.returncode == 3 and path.is_dir()):
        if interrupted is not None and not until_stopped:
            interrupted.add_note(f"what was recorded until then is in {path}")
            raise interrupted
        if child.returncode == 3:
            raise LimitExceededError(_text(lines), Run(path))
        for line in lines:
            print(line, file=sys.stderr)
        return Run(path)
    if interrupted is not None:
        raise interrupted
    raise _failure(child.returncode, lines)


def _wait(child: subprocess.Popen[str], progress: Progress | None) -> KeyboardInterrupt | None:
    """Waits for the end of a recording, which a KeyboardInterrupt brings about. It is stored then, so that it still takes a moment."""
    begun, interrupted = time.monotonic(), None
    while True:
        try:
            if progress is not None:
                progress.show(time.monotonic() - begun)
            child.wait(timeout=0.1)
            break
        except subprocess.TimeoutExpired:
            continue
        except KeyboardInterrupt as interrupt:
            interrupted = interrupted or interrupt
            child.send_signal(signal.SIGINT)
    if progress is not None:
        progress.end()
    return interrupted


class _Messages:
    """What the program and its command say on standard error, read beside them."""

    def __init__(self, stream: IO[str]) -> None:
        self._lines: list[str] = []
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            for line in self._stream:
                self._lines.append(line.rstrip("\n"))

    def all(self) -> list[str]:
        # What the command left running may hold the stream open.
        self._thread.join(timeout=2)
        return list(self._lines)


def _text(lines: Sequence[str]) -> str:
    """The last message, without the program's name; or all that was said, where it does not name itself."""
    named = [line.removeprefix(PREFIX) for line in lines if line.startswith(PREFIX)]
    return named[-1] if named else "\n".join(lines)


def _failure(code: int, lines: Sequence[str]) -> BecalmError:
    if code < 0:
        return BecalmError(f"becalm was ended by signal {signal.Signals(-code).name}")
    return (UsageError if code == 2 else BecalmError)(_text(lines).removeprefix("error: "))


def _duration(duration: float | str) -> str:
    if isinstance(duration, str):
        return duration
    if not 0 < duration < 1e9:
        raise UsageError(f"duration takes a number of seconds above 0, and not {duration}")
    return f"{round(duration * 1e9)}ns"


def _seconds(duration: float | str | None, detours: int | None, until_stopped: bool, command: Sequence[str]) -> float | None:
    """How long it will take, where that is known."""
    if isinstance(duration, (int, float)):
        return float(duration)
    if isinstance(duration, str):
        units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
        number = duration.rstrip("nusmh")
        try:
            return float(number) * units[duration[len(number):]]
        except (KeyError, ValueError):
            return None
    return None if detours or until_stopped or command else 10.0


def _free_name(node: str) -> FilePath:
    """``NODE-TIME.becalm``, or one with a number where that is taken."""
    stem = f"{node}-{datetime.datetime.now(datetime.timezone.utc):%Y%m%dT%H%M%SZ}"
    path, number = FilePath(f"{stem}.becalm"), 2
    while path.exists():
        path, number = FilePath(f"{stem}-{number}.becalm"), number + 1
    return path
