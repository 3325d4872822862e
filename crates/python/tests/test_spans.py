"""Spans of a program, as becalm explain reads them."""

import csv
import os
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

import becalm

PROGRAM = """
import os, sys, threading, time
import becalm

outer, inner = becalm.span("outer"), becalm.span("a, b")
with outer:
    time.sleep(0.01)
    with inner:
        time.sleep(0.02)
thread = threading.Thread(target=lambda: outer.__enter__().__exit__(None, None, None))
thread.start()
thread.join()
try:
    with outer:
        raise ValueError
except ValueError:
    pass
child = os.fork()
if child == 0:
    with outer:
        pass
    sys.exit()
os.waitpid(child, 0)
"""


def spans_of(text, name):
    before = time.monotonic_ns()
    subprocess.run([sys.executable, "-c", text], check=True, env=os.environ | {"BECALM_SPANS": name})
    after = time.monotonic_ns()
    lines = Path(name).read_text().splitlines()
    assert lines[0] == "# clock: monotonic"
    rows = list(csv.DictReader(lines[1:]))
    for row in rows:
        end = int(row["start_ns"]) + int(row["duration_ns"])
        assert before <= int(row["start_ns"]) <= end <= after, row
    return rows


class Spans(unittest.TestCase):
    def test_each_run_is_a_line_of_its_thread(self):
        rows = spans_of(PROGRAM, "spans-1.csv")
        self.assertEqual([row["name"] for row in rows].count("outer"), 4)
        inner = next(row for row in rows if row["name"] == "a, b")
        # Those of the child may come first.
        outer = next(row for row in rows if row["name"] == "outer" and row["tid"] == inner["tid"])
        length = {key: int(row["duration_ns"]) for key, row in (("outer", outer), ("inner", inner))}
        self.assertGreater(length["inner"], 20_000_000)
        self.assertGreater(length["outer"], length["inner"] + 10_000_000)
        # The main thread, another one, and the child.
        self.assertEqual(len({row["tid"] for row in rows}), 3)

    def test_all_are_written_in_the_end(self):
        rows = spans_of("import becalm\nspan = becalm.span('s')\nfor _ in range(200_000):\n    with span: pass", "spans-2.csv")
        self.assertEqual(len(rows), 200_000)
        starts = [int(row["start_ns"]) for row in rows]
        self.assertEqual(starts, sorted(starts))

    def test_each_iteration_is_a_span(self):
        text = '''
import time, becalm
def items():
    for number in range(3):
        time.sleep(0.3)
        yield number
seen = []
for number in becalm.span("step").over(items()):
    time.sleep(0.01)
    seen.append(number)
assert seen == [0, 1, 2]
for number in becalm.span("left").over([1, 2, 3]):
    if number == 2:
        break
assert list(becalm.span("none").over([])) == []
try:
    becalm.span("no").over(7)
except TypeError:
    pass
def failing():
    yield 1
    raise ValueError
try:
    list(becalm.span("failing").over(failing()))
except ValueError:
    pass
'''
        rows = spans_of(text, "spans-5.csv")
        self.assertEqual([row["name"] for row in rows], ["step", "step", "step", "left", "failing"])
        for row in rows[:3]:
            self.assertGreater(int(row["duration_ns"]), 10_000_000)
            # The time to get an item does not count.
            self.assertLess(int(row["duration_ns"]), 300_000_000)

    def test_a_file_of_others_is_not_replaced(self):
        Path("spans-3.csv").write_text("kept")
        failed = subprocess.run(
            [sys.executable, "-c", "import becalm\nbecalm.span('s')"],
            env=os.environ | {"BECALM_SPANS": "spans-3.csv"},
            capture_output=True,
            text=True,
        )
        self.assertIn("cannot create spans-3.csv", failed.stderr)
        self.assertEqual(Path("spans-3.csv").read_text(), "kept")

    def test_one_that_was_not_entered_is_refused(self):
        os.environ["BECALM_SPANS"] = "spans-%p.csv"
        span = becalm.span("s")
        caught = []

        def leave():
            try:
                span.__exit__(None, None, None)
            except RuntimeError as error:
                caught.append(str(error))

        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        self.assertEqual(caught, ["the span was not entered on this thread"])


if __name__ == "__main__":
    unittest.main()
