"""Recordings by the program: made, limited, interrupted, refused."""

import signal
import threading
import time
import unittest
from pathlib import Path

import becalm


def interrupt_after(seconds):
    # A shell that runs tests in the background has them ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(seconds, signal.raise_signal, [signal.SIGINT]).start()


class Recordings(unittest.TestCase):
    def test_a_recording_is_made_and_opened(self):
        run = becalm.record("made.becalm", cpus=0, duration=0.3, sources=False)
        document = run.documents[0]
        self.assertEqual([cpu["cpu"] for cpu in document["cpus"]], [0])
        self.assertEqual((document["ended"], document["settings"]["duration_ns"]), ("duration", 300_000_000))
        self.assertEqual(run.report()["schema"], "becalm.report/1")
        self.assertTrue(Path("made.becalm").is_dir())

    def test_it_ends_with_a_command(self):
        run = becalm.record("beside.becalm", cpus=[0], sources=False, command=["sleep", "0.2"], options=["--no-argv"])
        self.assertEqual(run.documents[0]["ended"], "command")
        self.assertEqual(run.documents[0]["settings"]["command"][0], "sleep")

    def test_without_a_name_it_has_its_own(self):
        run = becalm.record(cpus=0, duration="200ms", sources=False, node="n1")
        self.assertRegex(run.path.name, r"^n1-\d{8}T\d{6}Z\.becalm$")
        self.assertEqual(run.nodes, ["n1"])

    def test_what_was_recorded_until_an_interrupt_is_kept(self):
        interrupt_after(1.0)
        begun = time.monotonic()
        with self.assertRaises(KeyboardInterrupt) as caught:
            becalm.record("kept.becalm", cpus=0, duration="60s", sources=False)
        self.assertLess(time.monotonic() - begun, 30)
        self.assertEqual(caught.exception.__notes__, ["what was recorded until then is in kept.becalm"])
        self.assertEqual(becalm.open("kept").documents[0]["ended"], "signal")

    def test_until_stopped_an_interrupt_is_the_end(self):
        interrupt_after(1.0)
        run = becalm.record("stopped.becalm", cpus=0, until_stopped=True, sources=False)
        self.assertEqual(run.documents[0]["ended"], "signal")

    def test_a_limit_that_is_exceeded(self):
        with self.assertRaises(becalm.LimitExceededError) as caught:
            becalm.record("limited.becalm", cpus=0, duration=0.3, sources=False, max_detour="1ns")
        self.assertIn("limited", str(caught.exception.run.path))
        self.assertRegex(str(caught.exception), "CPU 0 lost .* in one detour, more than --max-detour 1ns")

    def test_what_cannot_be_recorded_is_refused(self):
        with self.assertRaises(becalm.UsageError):
            becalm.record("never.becalm", cpus=99_999, duration=0.1, sources=False)
        with self.assertRaises(becalm.UsageError):
            becalm.record("never.becalm", duration=-1)
        with self.assertRaises(becalm.UsageError):
            becalm.record("never.becalm", options=["--unheard-of"])
        Path("file.becalm").write_text("")
        with self.assertRaisesRegex(becalm.BecalmError, "file.becalm"):
            becalm.record("file.becalm", cpus=0, duration=0.1, sources=False)
        self.assertFalse(Path("never.becalm").exists())


if __name__ == "__main__":
    unittest.main()
