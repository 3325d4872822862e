"""Opens a run as a table, as often as asked, beside PyArrow: `python.py RUN REPETITIONS`. Prints one JSON document."""

import json
import sys
import threading
import time
import timeit

import numpy
import polars
import pyarrow
import pyarrow.parquet

import becalm

COLUMNS = ["cpu", "start_ns", "duration_ns", "incomplete"]
path, repetitions = sys.argv[1], int(sys.argv[2])


def seconds(of):
    """What it gives, and how long it takes: by the wall, and of the processors."""
    wall, processor = time.perf_counter(), time.process_time()
    given = of()
    return given, time.perf_counter() - wall, time.process_time() - processor


def address(column):
    return column.__array_interface__["data"][0]


opened, beside = [], []
for _ in range(repetitions):
    table, *took = seconds(lambda: becalm.open(path).detours())
    opened.append(took)
    read, *took = seconds(lambda: pyarrow.parquet.read_table(f"{path}/detours", columns=COLUMNS, use_threads=False))
    beside.append(took)
    assert read.num_rows == len(table), "PyArrow reads another number of detours"
    del read
copied = 0
arrow, frame = pyarrow.table(table), polars.DataFrame(table)
for name in ("detour", "start_ns", "duration_ns", "cpu"):
    places = (arrow[name].chunk(0).buffers()[1].address, address(frame[name].to_numpy()), address(numpy.asarray(table[name])))
    copied += sum(place != address(table[name]) for place in places)


def least(manager):
    """Nanoseconds of an empty block of a context manager."""
    rounds = timeit.repeat("with manager: pass", globals={"manager": manager}, number=1_000_000, repeat=7)
    return min(rounds) * 1e3


span, lock = least(becalm.span("cost")), least(threading.Lock())
print(json.dumps({"span": span, "lock": lock, "rows": len(table), "opened": opened, "beside": beside, "copied": copied}))
