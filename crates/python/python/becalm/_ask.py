"""The questions that commands answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Union

from . import _native, _values
from ._document import Document
from ._record import asked_program
from ._values import Cpus, Floats, Ints, Path

if TYPE_CHECKING:
    import numpy as np

    from ._run import Run, Table

    #: Starts and durations of the detours of one CPU, or a table of one CPU that has them as columns.
    Detours = Union[tuple["np.ndarray", "np.ndarray"], "Table"]

#: Numbers of ranks that the command line asks for, too.
RANKS = (64, 1 << 10, 16 << 10)


def law(
    grain_ns: Ints,
    delay_ns: Ints,
    rate_hz: Floats | None = None,
    *,
    probability: Floats | None = None,
    ranks: Ints = RANKS,
    tolerate: float | None = None,
) -> Document:
    """What delays of one length do to a job of any size, by the noise law (Tsafrir 2007).

    A rank is delayed by ``delay_ns`` in a phase of ``grain_ns`` with ``probability``, or so often in a second that it works
    (``rate_hz``). Of several of these each is held against each other one (``becalm.law-sweep/1``, whose list is ``cells``).
    ``tolerate`` asks what a job stands that may lose that share of its time, from 0 to below 1.

    >>> law = becalm.law(1_000_000, 50_000, rate_hz=10, ranks=np.array([64, 1024, 16384]))
    >>> law.column("slowdown_ratio").round(3)
    array([1.024, 1.05 , 1.05 ])
    >>> becalm.law(0, 50_000, rate_hz=10)
    Traceback (most recent call last):
    becalm.UsageError: the grain is 0ns; the law needs one above 0
    """
    return Document(
        *_native.law(
            grains_ns=_values.ints("grain_ns", grain_ns, at_least=None),
            delays_ns=_values.ints("delay_ns", delay_ns, at_least=None),
            rates_hz=None if rate_hz is None else _values.floats("rate_hz", rate_hz),
            probabilities=None if probability is None else _values.floats("probability", probability),
            ranks=_values.ints("ranks", ranks),
            tolerate=tolerate,
        )
    )


def predict(
    noise: Path | Run | Sequence[Path | Run] = (),
    *,
    detours: Detours | Sequence[Detours] | None = None,
    length_ns: int | None = None,
    ranks: Ints = RANKS,
    grain_ns: Ints = 1_000_000,
    phases: int = 10_000,
    collective: str | Iterable[str] = "ideal",
    network: str = "infiniband",
    bytes: Ints = 8,
    ranks_per_node: int | None = None,
    independent: bool = False,
    as_recorded: bool = False,
    sync: str | None = None,
    coalesce_ns: Ints = 0,
    without: str | Iterable[str] = (),
    blame: bool = False,
    tolerate: float | None = None,
    node_hours: float | None = None,
    seed: int = 1,
    replicas: int = 5,
    allow_long: bool = False,
    node: str | None = None,
    cpus: Cpus | None = None,
    with_self: bool = False,
) -> Document:
    """What noise costs a parallel job of any number of ranks.

    ``noise`` is a run, a formula such as ``"poisson:rate=10Hz,detour=50us"``, both with a ``+`` between, or several. Detours of your own
    are given as ``detours``, a pair of arrays of start and duration in nanoseconds (or a :class:`Table` of one CPU), or a list of such
    pairs, one for each CPU of a node; they lie within ``length_ns``, in rising order, and are replayed on a circle of that length.

    Options are those of ``becalm predict``, times in nanoseconds, shares from 0 to 1; ``sync`` is ``"yes"`` or ``"both"``. The same seed
    gives the same numbers on any machine, and as the command does. It takes all CPUs, and lets other Python threads run; Ctrl-C
    ends it.

    >>> predicted = becalm.predict("periodic:interval=10ms,detour=50us", ranks=[64, 1024], phases=1000)
    >>> predicted.column("slowdown_ratio").round(3)
    array([1.05, 1.05])
    >>> start, duration = np.arange(10) * 10_000_000, np.full(10, 50_000)
    >>> mine = becalm.predict(detours=(start, duration), length_ns=100_000_000, ranks=1024, phases=1000)
    >>> mine.column("slowdown_ratio").round(3)
    array([1.05])
    """
    noises: list[Any] = [_values.path(each) for each in ([noise] if _is_one(noise) else noise)]  # type: ignore[union-attr]
    if detours is not None:
        if length_ns is None:
            raise _native.UsageError("detours lie within a time: give its length as length_ns")
        noises.append(_given(detours, length_ns))
    options = {
        "node": node,
        "cpus": _values.cpus(cpus),
        "with_self": with_self,
        "ranks": _values.ints("ranks", ranks),
        "grains_ns": _values.ints("grain_ns", grain_ns, at_least=None),
        "phases": phases,
        "collectives": _values.texts(collective),
        "network": network,
        "payloads": _values.ints("bytes", bytes),
        "ranks_per_node": ranks_per_node,
        "independent": independent,
        "as_recorded": as_recorded,
        "sync": sync,
        "coalesce_ns": _values.ints("coalesce_ns", coalesce_ns, at_least=None),
        "without": _values.texts(without),
        "blame": blame,
        "tolerate": tolerate,
        "node_hours": node_hours,
        "seed": seed,
        "replicas": replicas,
        "allow_long": allow_long,
    }
    return Document(*_native.predict(noises, options))


def _is_one(noise: Any) -> bool:
    return isinstance(noise, str) or hasattr(noise, "__fspath__")


def _given(detours: Any, length_ns: int) -> dict[str, Any]:
    """Detours in arrays, for the native part."""
    is_pair = isinstance(detours, tuple) and len(detours) == 2 and not hasattr(detours[0], "names") and not isinstance(detours[0], tuple)
    each = [detours] if is_pair or hasattr(detours, "names") else list(detours)
    cpus = []
    for number, of_cpu in enumerate(each):
        start, duration = (of_cpu["start_ns"], of_cpu["duration_ns"]) if hasattr(of_cpu, "names") else of_cpu
        cpus.append((_values.column(f"the starts of CPU {number}", start), _values.column(f"the durations of CPU {number}", duration)))
    return {"name": "detours", "length_ns": _values.ints("length_ns", length_ns)[0], "cpus": cpus}


def report(
    run: Path | Run, *, node: str | None = None, cpus: Cpus | None = None, with_self: bool = False, ranks: int | None = None
) -> Document:
    """What a run recorded: how much time each CPU lost, to what, and what to do about it.

    Of what ``becalm cost``, ``becalm work`` or ``becalm-mpi`` stored, the program ``becalm`` makes the report (:func:`program`).

    >>> report = becalm.report("busy")
    >>> report["schema"], report.column("max_ns", of="cpus")
    ('becalm.report/1', array([  2690, 706700]))
    >>> print(report.text.splitlines()[1])
    NOISY     0.253% of CPU time lost (95 % CI 0.239% to 0.269%), longest interruption 707us
    """
    chosen = _values.cpus(cpus)
    answer = _native.report(_values.path(run), node=node, cpus=chosen, with_self=with_self, ranks=ranks)
    if answer is not None:
        return Document(*answer)
    words = ["report", _values.path(run)]
    words += [] if node is None else [f"--node={node}"]
    words += [] if chosen is None else ["--cpus=" + ",".join(map(str, chosen))]
    words += ["--with-self"] if with_self else []
    words += [] if ranks is None else [f"--ranks={ranks}"]
    return Document(asked_program([*words, "--json"]), asked_program(words))


def sources(
    run: Path | Run,
    *,
    node: str | None = None,
    cpus: Cpus | None = None,
    with_self: bool = False,
    per_cpu: bool = False,
    detour: tuple[int, int] | int | None = None,
    longest: int | None = None,
    together_within_ns: int | None = None,
) -> Document:
    """Who took the time: the sources of a run, those that took most first.

    One of these asks for something else: ``detour``, a number or a pair of CPU and number, and ``longest``, so many, for single detours as
    timelines; ``together_within_ns`` for what comes at once on several CPUs, or no further apart than that. Only the first two are for observed
    threads.

    >>> sources = becalm.sources("busy")
    >>> for row in sources["sources"][:2]:
    ...     print(row["source"], row["count"], row["total_ns"])
    gremlin 50 35000000
    tick 4950 8646500
    """
    asked = {"detour": detour, "longest": longest, "together_within_ns": together_within_ns, "per_cpu": per_cpu or None}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise _native.UsageError(f"{' and '.join(given)} ask for several answers: give one of them")
    if longest is not None and not 1 <= longest <= 100_000:
        raise _native.UsageError(f"longest takes 1 to 100000 detours, and not {longest}")
    named = None if detour is None else ":".join(map(str, detour)) if isinstance(detour, tuple) else str(detour)
    return Document(
        *_native.sources(
            _values.path(run),
            node=node,
            cpus=_values.cpus(cpus),
            with_self=with_self,
            per_cpu=per_cpu,
            detour=named,
            longest=longest,
            together_within_ns=together_within_ns,
        )
    )


def compare(
    before: Path | Run | Sequence[Path | Run],
    after: Path | Run | Sequence[Path | Run],
    *,
    cpus: Cpus | None = None,
    cpus_before: Cpus | None = None,
    cpus_after: Cpus | None = None,
    node_before: str | None = None,
    node_after: str | None = None,
    with_self: bool = False,
) -> Document:
    """What changed between runs before and after: by how much, how sure that is, and whether anything is shown at all.

    A side is one run or several. Rows have the figures of both sides, their change with its 95 % interval, and a verdict. Observed threads are
    compared by the time that others took from them (``becalm.compare-observed/1``).

    >>> compared = becalm.compare("lively", "livelier")
    >>> noise = compared["rows"][0]
    >>> noise["what"], round(noise["effect_ratio"], 3), noise["verdict"]
    ('noise_ratio', 1.267, 'no difference shown')
    """
    if cpus is not None and (cpus_before is not None or cpus_after is not None):
        raise _native.UsageError("cpus= cannot be used with cpus_before= or cpus_after=: leave one of them out")
    of_all = _values.cpus(cpus)
    sides = [[_values.path(each) for each in ([side] if _is_one(side) else side)] for side in (before, after)]  # type: ignore[union-attr]
    return Document(
        *_native.compare(
            *sides,
            side_before=(node_before, of_all or _values.cpus(cpus_before)),
            side_after=(node_after, of_all or _values.cpus(cpus_after)),
            with_self=with_self,
        )
    )
