"""Types: the package holds mypy's strictest rules, the stub of the native part says what is there, and who calls it is told of mistakes."""

import importlib
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
CALLS = """
import becalm
import numpy as np

run = becalm.open("busy")
lengths: np.ndarray = run.detours(cpus="0-3")["duration_ns"]
law: becalm.Document = becalm.law(1_000_000, 50_000, rate_hz=10, ranks=np.array([64, 1024]))
text: str = becalm.predict([run, "poisson:rate=10Hz,detour=50us"], ranks=[64]).text
again: becalm.Run = becalm.record(cpus=[1], duration="500ms")
"""
MISTAKES = """
import becalm

becalm.open(7)
becalm.law(1_000_000, 50_000, rate="10Hz")
becalm.record(duration=[1])
length: str = len(becalm.open("busy").detours())
"""


#: What mypy learned of NumPy's types takes ten seconds to learn again.
CACHE = PACKAGE.parents[1] / ".cache/mypy"


def checked(packages, *words):
    """How a checker ends that finds packages in a folder, and what it says."""
    place = {**os.environ, "MYPYPATH": str(packages), "PYTHONPATH": str(packages), "MYPY_CACHE_DIR": str(CACHE)}
    done = subprocess.run([sys.executable, "-m", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=place)
    return done.returncode, done.stdout


class Types(unittest.TestCase):
    def test_the_package_and_who_calls_it(self):
        with tempfile.TemporaryDirectory() as folder:
            right, wrong = Path(folder) / "right.py", Path(folder) / "wrong.py"
            right.write_text(CALLS)
            wrong.write_text(MISTAKES)
            _, said = checked(PACKAGE / "python", "mypy", "--strict", str(PACKAGE / "python/becalm"), str(right), str(wrong))
        errors = [line for line in said.splitlines() if ": error: " in line]
        self.assertEqual(len(errors), MISTAKES.count("becalm."), said)
        self.assertTrue(all("wrong.py:" in line for line in errors), said)

    def test_the_stub_says_what_is_there(self):
        native = importlib.import_module("becalm._native").__file__
        # The module alone: the package around it would have NumPy's types read once more.
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "becalm"
            package.mkdir()
            (package / "__init__.py").touch()
            for file in (Path(native), PACKAGE / "python/becalm/_native.pyi"):
                (package / file.name).symlink_to(file.resolve())
            code, said = checked(folder, "mypy.stubtest", "becalm._native")
        self.assertEqual(code, 0, said)


if __name__ == "__main__":
    unittest.main()
