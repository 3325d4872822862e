"""Examples: those of docstrings, of the README, of the book's page, and the notebook, each run as it stands."""

import base64
import contextlib
import doctest
import importlib
import io
import json
import os
import unittest
from pathlib import Path

import numpy as np
from jupyter_client.manager import start_new_kernel

import becalm
import becalm.plot

PACKAGE = Path(__file__).resolve().parents[1]
BOOK = PACKAGE.parents[1] / "docs/src"
MODULES = ("becalm", "becalm._ask", "becalm._document", "becalm._run", "becalm._record", "becalm.plot")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Examples(unittest.TestCase):
    def test_docstrings(self):
        attempted = 0
        for name in MODULES:
            names = {"becalm": becalm, "np": np}
            result = doctest.testmod(importlib.import_module(name), extraglobs=names, optionflags=FLAGS)
            self.assertEqual(result.failed, 0, name)
            attempted += result.attempted
        self.assertGreater(attempted, 15)

    def test_pages(self):
        for page in (PACKAGE / "README.md", BOOK / "python.md"):
            # A block of code ends an example as an empty line does.
            text = page.read_text().replace("\n```\n", "\n\n")
            test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
            said = io.StringIO()
            result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.write)
            self.assertGreater(result.attempted, 5, page)
            self.assertEqual(result.failed, 0, f"{page}: {said.getvalue()}")

    def test_notebook(self):
        notebook = json.loads((PACKAGE / "examples/tour.ipynb").read_text())
        cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
        with kernel() as ask:
            shown = {cell: ask(cell) for cell in cells}
        texts = "\n".join(text for outputs in shown.values() for text in outputs.get("text/plain", []))
        for expected in ("<run busy.becalm: node1>", "% of CPU time lost", "shape: (2, 3)", "('gremlin', 35000000)"):
            self.assertIn(expected, texts)
        drawn = [cell for cell, outputs in shown.items() if "image/png" in outputs]
        self.assertEqual(drawn, [cell for cell in cells if "becalm.plot." in cell], "each figure is below its cell")
        for cell in drawn:
            self.assertTrue(base64.b64decode(shown[cell]["image/png"][0]).startswith(b"\x89PNG"))

    def test_a_notebook_shows_how_far_a_recording_is(self):
        with kernel() as ask:
            outputs = ask("import becalm\nbecalm.record('noted.becalm', cpus=0, duration=1.5, sources=False)")
        bars = [text for text in outputs["text/html"] if text]
        self.assertRegex(bars[0], r"^<progress value=\"0\.0\d+\"></progress> recording, 0 s of 1\.5 s$")
        self.assertGreater(len(bars), 1)
        self.assertEqual(outputs["text/html"][-1], "", "it is taken away at the end")
        self.assertEqual(outputs["text/plain"][-1], "<run noted.becalm: " + becalm.open("noted").nodes[0] + ">")


@contextlib.contextmanager
def kernel():
    """A kernel of notebooks; what it gives asks it a cell, and collects what the cell shows by its kind."""
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    manager, client = start_new_kernel(env=environment)

    def ask(cell):
        shown = {}

        def take(message):
            content = message["content"]
            for kind, value in content.get("data", {}).items():
                shown.setdefault(kind, []).append(value)
            if message["msg_type"] == "stream":
                shown.setdefault("text/plain", []).append(content["text"])

        reply = client.execute_interactive(cell, timeout=300, output_hook=take)["content"]
        if reply["status"] != "ok":
            raise AssertionError(f"{cell}\n{reply['ename']}: {reply['evalue']}")
        return shown

    try:
        yield ask
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    unittest.main()
