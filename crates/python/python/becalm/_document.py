"""The documents that answer a question."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np


class Document(dict[str, Any]):
    """An answer: the dictionary that the command prints with ``--json``, and its text.

    >>> law = becalm.law(grain_ns=1_000_000, delay_ns=50_000, probability=0.001, ranks=[1024])
    >>> law["schema"], law["rows"][0]["slowdown_ratio"]
    ('becalm.law/1', 1.0320514260905145)
    """

    #: What the command prints on a terminal, in as many columns as it takes.
    text: str

    def __init__(self, document: str, text: str) -> None:
        super().__init__(json.loads(document))
        self.text = text

    def column(self, field: str, of: str | None = None) -> np.ndarray:
        """One field of all the objects of a list in the document, as a NumPy array.

        ``field`` may lead further down by dots, like ``"slowdown_ratio.low"``; what an object lacks becomes ``nan`` among numbers,
        and ``None`` otherwise. Texts become an array of texts, and whatever else an array of objects. ``of`` is the name of the list; where it is left out, the one list whose objects have the field.

        >>> law = becalm.law(grain_ns=1_000_000, delay_ns=50_000, rate_hz=10, ranks=[1, 1024])
        >>> law.column("ranks"), law.column("valid")
        (array([   1, 1024]), array([ True, False]))
        """
        if of is None:
            of = self._list_with(field)
        values = [_within(each, field) for each in self[of]]
        if all(value is None or isinstance(value, (int, float)) for value in values):
            return np.array([np.nan if value is None else value for value in values])
        if all(isinstance(value, str) for value in values):
            return np.array(values)
        found = np.empty(len(values), dtype=object)
        found[:] = values
        return found

    def _list_with(self, field: str) -> str:
        found = [name for name, objects in self._lists() if any(_has(each, field) for each in objects)]
        if len(found) != 1:
            lists = ", ".join(name for name, _ in self._lists())
            which = f"several lists have a field '{field}': {', '.join(found)}" if found else f"no list has a field '{field}'; there are {lists}"
            raise KeyError(which)
        return found[0]

    def _lists(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        for name, value in self.items():
            if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
                yield name, value

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}[{len(value)}]" if isinstance(value, list) else name for name, value in self.items() if name != "schema")
        return f"<{self.get('schema', 'a document')}: {fields}>"


def _has(value: Any, path: str) -> bool:
    """Whether an object has a field, be it of nothing."""
    *above, last = path.split(".")
    found = _within(value, ".".join(above)) if above else value
    return isinstance(found, dict) and last in found


def _within(value: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
