"""Examples: those of docstrings, of the README, of the book's page, and the notebook, each run as it stands."""

import ast
import contextlib
import doctest
import importlib
import io
import json
import unittest
from pathlib import Path

import numpy as np

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
        names, shown = {}, []
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] != "code":
                continue
            tree = ast.parse("".join(cell["source"]))
            last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(tree, f"cell {number}", "exec"), names)
                value = None if last is None else eval(compile(last, f"cell {number}", "eval"), names)
            shown.append(printed.getvalue() if value is None else repr(value))
        self.assertGreater(len(shown), 5)
        self.assertTrue(any("gremlin" in text for text in shown), shown)

    def test_the_stub_names_what_is_there(self):
        stub = ast.parse((PACKAGE / "python/becalm/_native.pyi").read_text())
        named = {node.name for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))} | {"VERSION"}
        native = importlib.import_module("becalm._native")
        self.assertEqual(named, {name for name in dir(native) if not name.startswith("_")})
        for node in stub.body:
            if isinstance(node, ast.ClassDef):
                members = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
                members |= {each.target.id for each in node.body if isinstance(each, ast.AnnAssign)}
                self.assertLessEqual(members, set(dir(getattr(native, node.name))), node.name)


if __name__ == "__main__":
    unittest.main()
