"""What functions answer is what the commands print, to the last digit, and so is what they refuse."""

import json
import re
import signal
import subprocess
import threading
import time
import unittest
import warnings
from pathlib import Path

import numpy as np

import becalm

NOISE = "poisson:rate=10Hz,detour=50us"
#: A prediction that takes minutes.
LONG = {"ranks": 1 << 14, "collective": "barrier", "phases": 5_000, "allow_long": True}


def command(*words):
    return subprocess.run(["becalm", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Answers(unittest.TestCase):
    maxDiff = None

    def same(self, document, *words):
        done = command(*words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(document, json.loads(done.stdout), words)
        self.assertEqual(document.text, command(*words).stdout, words)

    def test_laws(self):
        self.same(becalm.law(1_000_000, 50_000, 10), "predict", "--law", "--grain=1ms", "--delay=50us", "--rate=10Hz")
        document = becalm.law(1_000_000, 50_000, probability=1e-3, ranks=np.array([1, 1 << 20]), tolerate=0.05)
        self.same(document, "predict", "--law", "--grain=1ms", "--delay=50us", "--probability=0.001", "--ranks=1,1Mi", "--tolerate=5%")
        swept = becalm.law(np.array([1_000_000, 2_000_000]), [50_000], np.array([1, 10.5]), ranks=64)
        self.same(swept, "predict", "--law", "--grain=1ms,2ms", "--delay=50us", "--rate=1Hz,10.5Hz", "--ranks=64")

    def test_predictions(self):
        few = {"ranks": [64, 1024], "phases": 500}
        words = ("--ranks=64,1Ki", "--phases=500")
        self.same(becalm.predict(NOISE, **few), "predict", NOISE, *words)
        self.same(becalm.predict("busy", **few), "predict", "busy", *words)
        self.same(becalm.predict(becalm.open("busy"), cpus=1, blame=True, tolerate=0.05, **few),
                  "predict", "busy.becalm", "--cpus=1", "--blame", "--tolerate=5%", *words)
        self.same(becalm.predict("busy", without=["gremlin"], node_hours=1e6, seed=7, replicas=3, independent=True, **few),
                  "predict", "busy", "--without=gremlin", "--node-hours=1M", "--seed=7", "--replicas=3", "--independent", *words)
        self.same(becalm.predict(NOISE, collective=["barrier", "allreduce:ring"], network="bgl", bytes=64, ranks_per_node=2, ranks=16, phases=50),
                  "predict", NOISE, "--collective=barrier,allreduce:ring", "--network=bgl", "--bytes=64", "--ranks-per-node=2", "--ranks=16",
                  "--phases=50")
        self.same(becalm.predict([NOISE, "busy"], grain_ns=[250_000, 500_000], sync="both", coalesce_ns=[0, 10_000_000], ranks=64, phases=200),
                  "predict", NOISE, "busy", "--grain=250us,500us", "--sync=both", "--coalesce=0,10ms", "--ranks=64", "--phases=200")

    def test_defaults_are_those_of_the_command(self):
        self.same(becalm.predict("periodic:interval=10ms,detour=50us"), "predict", "periodic:interval=10ms,detour=50us")

    def test_detours_in_arrays_are_what_they_are_in_a_run(self):
        run = becalm.open("busy")
        document = run.documents[0]
        begin = max(cpu["start_ns"] for cpu in document["cpus"])
        length = min(cpu["start_ns"] + cpu["duration_ns"] for cpu in document["cpus"]) - begin
        arrays = []
        for cpu in (0, 1):
            table = run.detours(cpus=cpu)
            arrays.append((table["start_ns"] - begin, table["duration_ns"]))
        options = {"ranks": [64, 4096], "phases": 300}
        mine = becalm.predict(detours=arrays, length_ns=length, **options)
        theirs = becalm.predict(run, with_self=True, **options)
        self.assertEqual(mine["rows"], theirs["rows"])
        alone = becalm.predict(detours=run.detours(cpus=1), length_ns=length + begin, **options)
        self.assertEqual(alone["noise"]["detours"], 2_500)
        for strided in (arrays[0][0][::2], arrays[0][0].astype(np.uint64)[::2]):
            half = becalm.predict(detours=(strided, arrays[0][1][::2]), length_ns=length, **options)
            self.assertEqual(half["noise"]["detours"], 1_250)

    def test_reports_sources_and_comparisons(self):
        self.same(becalm.report("busy"), "report", "busy")
        self.same(becalm.open("busy").report(cpus="0", ranks=4096), "report", "busy.becalm", "--cpus=0", "--ranks=4Ki")
        self.same(becalm.report("calm"), "report", "calm")
        self.same(becalm.report("costs/clock"), "report", "costs/clock")
        self.same(becalm.sources("busy", per_cpu=True, with_self=True), "report", "busy", "--sources", "--per-cpu", "--with-self")
        self.same(becalm.sources("busy", longest=3), "detours", "busy", "--longest=3")
        self.same(becalm.sources("busy", detour=(1, 7)), "detours", "busy", "--detour=1:7")
        self.same(becalm.sources("busy", together_within_ns=1_000), "detours", "busy", "--together", "--within=1us")
        self.same(becalm.compare("lively", Path("livelier.becalm")), "compare", "lively", "livelier.becalm")
        self.same(becalm.compare("cluster", "cluster", node_before="n01", node_after="n02"),
                  "compare", "cluster", "cluster", "--node-a=n01", "--node-b=n02")

    def test_observed_threads(self):
        self.same(becalm.compare("solver-before", "solver-after"), "compare", "solver-before", "solver-after")
        self.same(becalm.compare(["solver-before"], ["solver-after"], node_before="node1"),
                  "compare", "solver-before", "solver-after", "--node-a=node1")
        self.assertEqual(becalm.compare("solver-after", "solver-before")["takers"][0]["source"], "grem1")
        self.same(becalm.sources("observed", longest=3), "detours", "observed", "--longest=3")
        self.same(becalm.sources("observed", detour=7), "detours", "observed", "--detour=7")

    def test_summary_forms(self):
        self.assertEqual(command("condense", "busy", "-o", "short.becalm").returncode, 0)
        self.same(becalm.report("short"), "report", "short")
        self.same(becalm.sources("short"), "report", "short", "--sources")
        self.same(becalm.predict("short", ranks=64, phases=200), "predict", "short", "--ranks=64", "--phases=200")
        with self.assertRaisesRegex(becalm.BecalmError, "record without --summary"):
            becalm.open("short")

    def test_errors_have_the_text_of_the_command(self):
        alltoall = {"ranks": 1 << 16, "collective": "alltoall", "phases": 100_000}
        # How the command names parameters, and how Python does.
        cases = [
            (lambda: becalm.law(0, 1, 1), ("predict", "--law", "--grain=0ns", "--delay=1ns", "--rate=1Hz"), {}),
            (lambda: becalm.report("nowhere"), ("report", "nowhere"), {}),
            (lambda: becalm.report("calm", node="x"), ("report", "calm", "--node=x"), {}),
            (lambda: becalm.sources("calm"), ("report", "calm", "--sources"), {}),
            (lambda: becalm.sources("busy", detour=7), ("detours", "busy", "--detour=7"), {"--detour 0:7": "detour=(0, 7)"}),
            (lambda: becalm.sources("cluster", detour=(0, 7)), ("detours", "cluster", "--detour=0:7"), {"--node n00": "node='n00'"}),
            (lambda: becalm.compare("busy", "busy"), ("compare", "busy", "busy"),
             {"--cpus-a": "cpus_before=", "--cpus-b": "cpus_after="}),
            (lambda: becalm.compare("solver-before", "busy"), ("compare", "solver-before", "busy"), {}),
            (lambda: becalm.compare("solver-before", "printer"), ("compare", "solver-before", "printer"), {}),
            (lambda: becalm.compare("solver-before", "solver-before"), ("compare", "solver-before", "solver-before"), {}),
            (lambda: becalm.compare("solver-before", "solver-after", cpus=1), ("compare", "solver-before", "solver-after", "--cpus=1"),
             {"--cpus": "cpus="}),
            (lambda: becalm.sources("observed", detour=(1, 7)), ("detours", "observed", "--detour=1:7"), {"--detour 7": "detour=7"}),
            (lambda: becalm.sources("observed"), ("report", "observed", "--sources"), {}),
            (lambda: becalm.sources("observed", together_within_ns=0), ("detours", "observed", "--together"), {}),
            (lambda: becalm.predict(NOISE, blame=True), ("predict", NOISE, "--blame"),
             {"--blame": "blame=True", "--without": "without="}),
            (lambda: becalm.predict(NOISE, cpus=1), ("predict", NOISE, "--cpus=1"), {"--cpus": "cpus=", "--node": "node="}),
            (lambda: becalm.predict("busy", without="nobody"), ("predict", "busy", "--without=nobody"), {}),
            (lambda: becalm.predict(NOISE, ranks=[0]), ("predict", NOISE, "--ranks=0"), {}),
            (lambda: becalm.predict(NOISE, coalesce_ns=1_000, blame=True), ("predict", NOISE, "--coalesce=1us", "--blame"),
             {"--blame": "blame=True", "--tolerate": "tolerate=", "--coalesce": "coalesce_ns="}),
            (lambda: becalm.predict(NOISE, **alltoall), ("predict", NOISE, "--ranks=64Ki", "--collective=alltoall", "--phases=100000"),
             {"--allow-long": "allow_long=True"}),
        ]
        for asked, words, names in cases:
            done = command(*words)
            kind = {1: becalm.BecalmError, 2: becalm.UsageError}[done.returncode]
            with self.assertRaises(kind, msg=words) as caught:
                asked()
            text = done.stderr
            for option, argument in names.items():
                self.assertIn(option, text)
                text = text.replace(option, argument)
            # A next step may be a whole command.
            self.assertNotRegex(text.replace("becalm work --baseline", ""), " --[a-z]")
            # The forecast is measured anew each time.
            shown, text = (re.sub(r"about \d+ days", "about N days", said) for said in (f"becalm: {caught.exception}\n", text))
            self.assertEqual(shown, text, words)
            self.assertIs(type(caught.exception), kind, words)

    def test_arguments_that_make_no_sense_are_refused(self):
        start, duration = np.arange(3) * 10, np.full(3, 5)
        for wrong in (
            lambda: becalm.law(1, 1),
            lambda: becalm.law(1, 1, 1, probability=1),
            lambda: becalm.law(1.5, 1, 1),
            lambda: becalm.law(1, 1, probability=2),
            lambda: becalm.law(1, 1, 1, tolerate=1),
            lambda: becalm.law(1, 1, 1, ranks=-1),
            lambda: becalm.predict(),
            lambda: becalm.predict(NOISE, sync="no"),
            lambda: becalm.predict(NOISE, as_recorded=True),
            lambda: becalm.predict(NOISE, collective="all"),
            lambda: becalm.predict(NOISE, network="fast"),
            lambda: becalm.predict(NOISE, replicas=0),
            lambda: becalm.predict(NOISE, ranks_per_node=0),
            lambda: becalm.predict(NOISE, node_hours=-1),
            lambda: becalm.predict(detours=(start, duration)),
            lambda: becalm.predict(detours=(start, duration[:2]), length_ns=100),
            lambda: becalm.predict(detours=(start * 0.5, duration), length_ns=100),
            lambda: becalm.predict(detours=(start, duration), length_ns=100, blame=True),
            lambda: becalm.sources("busy", longest=1, detour=1),
            lambda: becalm.sources("busy", longest=0),
            lambda: becalm.compare("busy", "lively", cpus=1, cpus_after=1),
        ):
            with self.assertRaises(becalm.UsageError):
                wrong()
        with self.assertRaisesRegex(becalm.BecalmError, "the recording of CPU 0 of node detours"):
            becalm.predict(detours=(start[::-1], duration), length_ns=100)

    def test_columns_of_documents(self):
        predicted = becalm.predict(NOISE, ranks=[64, 128], phases=100)
        self.assertEqual(predicted.column("ranks").tolist(), [64, 128])
        self.assertTrue(np.isnan(predicted.column("lost_node_hours")).all())
        self.assertEqual(becalm.report("busy").column("tail_verdict", of="cpus").tolist(), ["bad_fit", "bad_fit"])
        with self.assertRaisesRegex(KeyError, "no list has a field 'rank'"):
            predicted.column("rank")

    def test_other_threads_run_meanwhile(self):
        ticks, is_over = [], threading.Event()

        def tick():
            while not is_over.wait(0.005):
                ticks.append(time.monotonic())

        thread = threading.Thread(target=tick)
        thread.start()
        begun = time.monotonic()
        becalm.predict(NOISE, ranks=1 << 12, collective="barrier", phases=300)
        took = time.monotonic() - begun
        is_over.set()
        thread.join()
        within = [at for at in ticks if begun < at < begun + took]
        # With the lock held it would be one or none.
        self.assertGreater(len(within), 3, took)

    def interrupt_soon(self):
        # Whoever runs in the background of a script has the signal ignored, and so has what it starts.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()

    def test_a_signal_ends_a_prediction(self):
        self.interrupt_soon()
        begun = time.monotonic()
        with warnings.catch_warnings(), self.assertRaises(KeyboardInterrupt):
            warnings.simplefilter("ignore")
            becalm.predict(NOISE, **LONG)
        self.assertLess(time.monotonic() - begun, 15)
        # What was left is whole.
        self.assertEqual(becalm.predict(NOISE, ranks=64, phases=10)["schema"], "becalm.predict/1")

    def test_how_long_it_takes_is_told(self):
        self.interrupt_soon()
        with warnings.catch_warnings(record=True) as told, self.assertRaises(KeyboardInterrupt):
            warnings.simplefilter("always")
            becalm.predict(NOISE, **{**LONG, "phases": 20_000})
        self.assertTrue(any("this will take about" in str(each.message) for each in told), told)


if __name__ == "__main__":
    unittest.main()
