"""Reads what `.ci/schemas` makes schemas of: the types that serde serializes and the fields of rows, in `crates/*/src`.

It knows as much of Rust as these definitions need, formatted by rustfmt. What it does not understand is an error, never a guess.
"""

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = "crates/report/src"

# What a figure of a row is in a document; see crates/report/src/form/value.rs.
FIGURES = {
    "Text": ["string"], "Count": ["integer"], "Number": ["integer"], "Time": ["integer"], "Fine": ["integer"], "Picos": ["integer"],
    **{kind: ["number", "null"] for kind in ["Rate", "Ratio", "Share", "Points", "Factor", "Change", "Real", "Often"]},
    "Flag": ["boolean"], "Missing": ["null"], "time": ["integer", "null"], "fine": ["integer", "null"],
}


class Unknown(Exception):
    """Something in the sources that this program does not understand."""


def split(text, separator=","):
    """Splits at a separator outside of brackets and texts."""
    parts, depth, start, at = [], 0, 0, 0
    while at < len(text):
        sign = text[at]
        if sign == '"':
            at = re.compile(r'"(\\.|[^"\\])*"', re.S).match(text, at).end()
            continue
        if text.startswith("//", at):
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
            continue
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == "<" and not text[at - 1].isspace():
            depth += 1
        elif sign == ">" and text[at - 1] not in "-= ":
            depth -= 1
        elif sign == separator and depth <= 0:
            parts.append(text[start:at])
            start = at + 1
        at += 1
    return [part for part in [*parts, text[start:]] if part.strip()]


def block(text, at):
    """What stands between the bracket at this place and the one that closes it."""
    pairs = {"{": "}", "(": ")", "[": "]"}
    depth, begin, quoted = 0, at, re.compile(r"""("(\\.|[^"\\])*"|'(\\.|[^'\\])'|//[^\n]*)""", re.S)
    while at < len(text):
        if found := quoted.match(text, at):
            at = found.end()
            continue
        if text[at] in "({[":
            depth += 1
        elif text[at] in ")}]":
            depth -= 1
            if depth == 0:
                return text[begin + 1 : at]
        at += 1
    raise Unknown(f"no {pairs[text[begin]]} closes {text[begin:begin + 80]!r}")


def peeled(text):
    """The comment and the attributes before a field, a variant or a type, and the rest."""
    comment, attributes = [], []
    text = text.strip()
    while True:
        if found := re.match(r"///? ?([^\n]*)(\n|$)", text):
            if text.startswith("///"):
                comment.append(found.group(1).strip())
        elif text.startswith("#["):
            inside = re.match(r"#\[((?:[^\[\]]|\[[^\]]*\])*)\]", text, re.S)
            attributes.append(" ".join(inside.group(1).split()))
            found = inside
        else:
            return said(" ".join(comment)), attributes, text
        text = text[found.end() :].strip()


def said(comment):
    """A comment in the words of a document: `null` for what Rust calls `None`, and no links into the sources."""
    return re.sub(r"\[`(?:\w+::)*(\w+)`\](\([^)]*\))?", r"`\1`", comment).replace("`None`", "`null`").replace("`Some`", "a value")


def serde(attributes):
    """The words of serde's attributes: `skip`, `rename` with its value, and so on."""
    words = {}
    for attribute in attributes:
        if found := re.match(r"serde\((.*)\)$", attribute):
            for word in split(found.group(1)):
                key, _, value = word.partition("=")
                words[key.strip()] = value.strip().strip('"')
    known = {"rename", "rename_all", "flatten", "skip", "skip_serializing_if", "default", "transparent", "tag", "untagged", "with", "from",
             "try_from", "into", "alias", "deserialize_with"}
    if strange := set(words) - known:
        raise Unknown(f"serde's {', '.join(strange)}")
    return words


def named(name, rule):
    """A variant's name under a rule of serde."""
    words = [word.lower() for word in re.findall(r"[A-Z][a-z0-9]*", name)]
    return {"": name, "snake_case": "_".join(words), "kebab-case": "-".join(words)}[rule]


class Source:
    """One source file: its types and its lists of fields."""

    def __init__(self, path):
        self.path = path
        text = path.read_text()
        self.text = text.split("#[cfg(test)]\nmod tests")[0]
        self.types = {}
        for found in re.finditer(r"^[ \t]*(?:pub(?:\([^)]*\))? )?(struct|enum) (\w+)(?:<([^>\n]*)>)?([^;{(\n]*)([;{(])", self.text, re.M):
            form, name, parameters, _, opens = found.groups()
            comment, attributes, _ = peeled(self.head(found.start()) + "end")
            if not any("Serialize" in attribute for attribute in attributes if attribute.startswith("derive")):
                continue
            body = block(self.text, found.end() - 1) if opens != ";" else ""
            parameters = [part.split(":")[0].strip() for part in (parameters or "").split(",") if not part.strip().startswith("'")]
            self.types[name] = (form, comment, attributes, parameters, body, opens)
        # The functions that give a figure, and what they do.
        self.figures = {}
        for found in re.finditer(r"\bfn (\w+)([^{;]*)\{", self.text):
            if re.search(r"-> Value\s*(where.*)?$", found.group(2), re.S):
                self.figures[found.group(1)] = block(self.text, found.end() - 1)
        self.lists, self.modules = {}, {}
        for found in re.finditer(r"\bfields! \{", self.text):
            self.read_fields(block(self.text, found.end() - 1))
        for found in re.finditer(r"\bconst (\w+): &\[Field<[^;]*?= &\[", self.text):
            self.lists[found.group(1)] = f"const {found.group(1)}"
            entries = split(block(self.text, found.end() - 1))
            self.modules[f"const {found.group(1)}"] = {str(number): entry.strip() for number, entry in enumerate(entries)}
        # The functions that give a field, and which.
        self.makers = {}
        for found in re.finditer(r"\bfn (\w+)<[^{;]*-> Field<R> \{", self.text):
            self.makers[found.group(1)] = block(self.text, found.end() - 1).strip()

    def head(self, at):
        """The comments and attributes above a place."""
        lines = self.text[:at].splitlines()
        first = len(lines)
        # An attribute of several lines ends with its bracket.
        while first and re.match(r"[ \t]*(///|#\[|[^/]*\]$)", lines[first - 1]):
            first -= 1
        return "\n".join(lines[first:]) + "\n"

    def read_fields(self, body):
        """A list of fields: `LIST, module: Row { NAME = ...; }`."""
        _, _, body = peeled(body)
        head, inner = body[: body.index("{")], block(body, body.index("{"))
        found = re.match(r"(?:pub(?:\([^)]*\))? )?(?:(\w+), )?(\w+): ", head)
        if not found:
            # The macro's own definition.
            return
        name, module = found.groups()
        fields = {}
        for entry in split(inner, ";"):
            constant, _, value = peeled(entry)[2].partition("=")
            fields[constant.strip()] = value.strip()
        self.modules[module] = fields
        if name:
            self.lists[name] = module


class Sources:
    """All source files whose types may be in documents."""

    def __init__(self):
        crates = ["units", "model", "stats", "tune", "analyze", "scale", "paper", "report", "live"]
        self.files = {path: Source(path) for crate in crates for path in sorted((ROOT / "crates" / crate / "src").rglob("*.rs"))}

    def near(self, file, fits):
        """The files that fit, those nearest to a file in the tree first."""
        def distance(other):
            same = len(os.path.commonpath([file.path, other.path]))
            return (-same, len(other.path.parts), str(other.path))
        return sorted((other for other in self.files.values() if fits(other)), key=distance)

    def type(self, name, file):
        """A type that serde serializes, as a file means it by this name."""
        for other in [file, *self.near(file, lambda other: name in other.types)]:
            if name in other.types:
                return other, other.types[name]
        raise Unknown(f"{file.path}: no type {name} that is serialized")

    def constant(self, module, name, file):
        """A field that is a constant of a module, as a file means it, and the file that has it."""
        imported = re.search(rf"use ([\w:]*)::(?:\{{[^}}]*)?\b{module}\b", file.text)
        near = self.near(file, lambda other: name in other.modules.get(module, {}))
        if imported:
            last = imported.group(1).split("::")[-1]
            near.sort(key=lambda other: other.path.stem != last)
        for other in [file, *near]:
            if name in other.modules.get(module, {}):
                return other, other.modules[module][name]
        for other in self.near(file, lambda other: other.path.stem == module or other.path.parent.name == module):
            if found := re.search(rf"\bconst {name}: Field<\w+> = Field \{{", other.text):
                return other, "Field {" + block(other.text, found.end() - 1) + "}"
        raise Unknown(f"{file.path}: the field {module}::{name}")

    def list(self, path, file):
        """The fields of a list, as a file names it: `ROW`, `compare::ROW`."""
        *modules, name = path.split("::")
        def fits(other):
            return name in other.lists and all(module in other.path.parts or other.path.stem == module for module in modules)
        imported = re.search(rf"use ([\w:]*)::(?:\{{[^}}]*)?\b{name}\b", file.text)
        if imported and not modules:
            modules = [module for module in imported.group(1).split("::") if module not in ("crate", "super", "self")]
        files = [file] if fits(file) else self.near(file, fits)
        if not files:
            raise Unknown(f"{file.path}: no list {path} of fields")
        return files[0], files[0].modules[files[0].lists[name]]

    def title(self, path, file):
        """The name that a constant of type `Title` has, as a file or the catalogue knows it."""
        for text in [file.text, self.files[ROOT / REPORT / "catalogue.rs"].text]:
            if found := re.search(rf'const {path.split("::")[-1]}: Title =\s*Title::new\(\s*"([^"]*)"', text):
                return found.group(1)
        raise Unknown(f"{file.path}: no title {path}")

    def field(self, value, file, seen=()):
        """The name of a field and the kinds of its figures."""
        value = value.strip()
        if found := re.match(r"Field \{", value):
            given = dict((part.split(":", 1) + [""])[:2] for part in map(str.strip, split(block(value, found.end() - 1))))
            return given.get("name", "").strip().strip('"'), self.kinds(given["get"].strip(), file)
        if found := re.match(r"measured!\(\w+, (\w+)(?: of \w+, (\"\w+\"))?", value):
            # A figure of what was measured, if it was.
            name, kinds = self.field(*reversed(self.of_measured(found.group(1))))
            return (found.group(2) or name).strip('"'), kinds | {"Missing"}
        if found := re.match(r"([\w:]+)\.field\(", value):
            return self.title(found.group(1), file), self.kinds(block(value, found.end() - 1), file)
        if found := re.match(r"(?:\w+::)*(\w+)\(([^()]*)\)$", value):
            maker = next(iter([other for other in [file, *self.near(file, lambda other: found.group(1) in other.makers)] if found.group(1) in other.makers]))
            name, kinds = self.field(maker.makers[found.group(1)], maker, (*seen, value))
            return name or split(found.group(2))[0].strip('"'), kinds
        parts = [part.strip() for part in split(value)]
        if parts[0].startswith('"'):
            return parts[0].strip('"'), self.kinds(",".join(parts[2:]), file)
        if len(parts) > 1:
            return self.title(parts[0], file), self.kinds(",".join(parts[1:]), file)
        path = parts[0].split("=>")[0].strip()
        *modules, constant = path.split("::")
        if not modules:
            raise Unknown(f"{file.path}: the field {value!r}")
        if len(seen) > 5:
            raise Unknown(f"{file.path}: the field {path} leads to itself")
        other, value = self.constant(modules[-1], constant, file)
        return self.field(value, other, (*seen, path))

    def of_measured(self, constant):
        file = self.files[ROOT / REPORT / "cost/measured.rs"]
        return file, file.modules["figures"][constant]

    def kinds(self, getter, file, depth=0):
        """Which figures a getter gives: those that it names, and those of the functions that it calls."""
        kinds = set(re.findall(r"\b(?:Value|Self)::(\w+)", getter)) & set(FIGURES)
        # `figures::ratio(...)`, `PredictedRow::low`, `line.slowdown(...)`, `figure(...)`.
        called = set(re.findall(r"\b([a-z_]\w*)\(", getter)) | set(re.findall(r"(?:^|, )([a-z_]\w*)(?=\)|\s*$)", getter)) | set(re.findall(r"::([a-z_]\w*)\b", getter))
        for name in sorted(called) if depth < 4 else []:
            others = [file] if name in file.figures else self.near(file, lambda other: name in other.figures)
            if others and not (name in ("time", "fine") and others[0].path.name == "value.rs"):
                kinds |= self.kinds(others[0].figures[name], others[0], depth + 1)
        return kinds
