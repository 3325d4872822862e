"""Makes the JSON schema of a type that `.ci/schema_sources.py` has read."""

import re

from schema_sources import FIGURES, REPORT, ROOT, Unknown, block, named, peeled, serde, split

# Maps whose keys become fields of the struct around them: of a sweep of injections, the option whose values are swept.
NAMES_OF_KEYS = {("CellDocument", "often"): ["interval", "rate", "ratio"]}

TEXT, WHOLE, COUNT, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
# What is not finite is written as null.
NUMBER = {"type": ["number", "null"]}
SCALARS = {
    **dict.fromkeys(["String", "str", "PathBuf", "Path", "char"], TEXT),
    **dict.fromkeys(["u8", "u16", "u32", "u64", "usize"], COUNT),
    **dict.fromkeys(["i8", "i16", "i32", "i64", "isize"], WHOLE),
    **dict.fromkeys(["f32", "f64"], NUMBER),
    "bool": FLAG,
    "Timestamp": {"type": "string", "description": "RFC 3339, in UTC"},
    "CpuList": {"type": "string", "pattern": r"^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$", "description": "CPUs as the kernel lists them: 0-2,5"},
}


class Maker:
    """Makes the schema of one document."""

    def __init__(self, sources):
        self.sources, self.definitions = sources, {}

    def of(self, text, file, bound=None):
        """The schema of a type, as a file writes it."""
        text, bound = re.sub(r"^(&('\w+ )?(mut )?|Box<(?=.*>$))", "", text.strip()), bound or {}
        text = re.sub(r"^dyn ", "", text)
        name, _, inner = re.match(r"([\w:]*)(<?)(.*)", text, re.S).groups()
        name, inner = name.split("::")[-1], split(inner.removesuffix(">"))
        inner = [part for part in inner if not part.strip().startswith("'")]
        if text.startswith("["):
            items, _, count = text[1:-1].partition(";")
            schema = {"type": "array", "items": self.of(items, file, bound)}
            return schema | ({"minItems": int(count), "maxItems": int(count)} if count else {})
        if text.startswith("("):
            parts = [self.of(part, file, bound) for part in split(text[1:-1])]
            return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
        if name in bound:
            return self.of(*bound[name])
        if name == "Option":
            return self.or_null(self.of(inner[0], file, bound))
        if name == "Vec":
            return {"type": "array", "items": self.of(inner[0], file, bound)}
        if name == "Json":
            # Of a command that was run by this one, which names its schema.
            return {"type": "object", "properties": {"schema": TEXT}, "required": ["schema"]}
        if name == "Cow":
            return self.of(inner[-1], file, bound)
        if name == "BTreeMap":
            return {"type": "object", "additionalProperties": self.of(inner[1], file, bound)}
        if name in SCALARS:
            return dict(SCALARS[name])
        return self.named(name, inner, file, bound)

    @staticmethod
    def or_null(schema):
        if isinstance(schema.get("type"), str) and "$ref" not in schema and "enum" not in schema:
            return schema | {"type": [schema["type"], "null"]}
        return schema if schema.get("type") and "null" in schema["type"] else {"anyOf": [schema, {"type": "null"}]}

    def named(self, name, arguments, file, bound):
        """The schema of a type of becalm, as a reference to its definition."""
        where, item = self.sources.type(name, file)
        key = (where.path, name, tuple(arguments))
        if key not in self.definitions:
            taken = [known for known, _ in self.definitions.values()]
            label = next(label for label in [name, *(f"{name}{number}" for number in range(2, 99))] if label not in taken)
            self.definitions[key] = (label, None)
            inner = {parameter: (argument, file, bound) for parameter, argument in zip(item[3], arguments)}
            self.definitions[key] = (label, self.defined(name, item, where, inner))
        label, schema = self.definitions[key]
        if schema is not None and schema.get("type") != "object" and "oneOf" not in schema and "enum" not in schema:
            # A number or a text with a name of its own needs no definition.
            return schema
        return {"$ref": f"#/$defs/{label}"}

    def defined(self, name, item, file, bound):
        form, comment, attributes, _, body, opens = item
        words = serde(attributes)
        described = {"description": comment} if comment else {}
        if "into" in words:
            return self.of(words["into"], file, bound) | described
        if form == "struct" and opens == "(":
            return self.of(re.sub(r"^pub(\([^)]*\))? ", "", split(body)[0].strip()), file, bound) | described
        if form == "struct":
            return described | self.object(name, body, file, bound)
        return described | self.enumeration(name, words, body, file, bound)

    def object(self, owner, body, file, bound, first=None):
        """A struct with its fields; what is flattened into it stands among them."""
        properties, required, choices = dict(first or {}), list(first or {}), None
        closed = False
        for field in split(body):
            comment, attributes, rest = peeled(field)
            found = re.match(r"(?:pub(?:\([^)]*\))? )?(?:r#)?(\w+): (.*)", rest, re.S)
            if not found:
                raise Unknown(f"{file.path}: the field {rest[:60]!r}")
            name, kind = found.group(1), " ".join(found.group(2).split())
            words = serde(attributes)
            if "skip" in words:
                continue
            schema = self.rows(owner, name, kind, file) or (TEXT if words.get("with") == "text" else None) or self.of(kind, file, bound)
            if (owner, name) in NAMES_OF_KEYS:
                properties |= {key: schema["additionalProperties"] for key in NAMES_OF_KEYS[owner, name]}
                continue
            if "flatten" in words:
                inner = self.resolved(schema)
                if "oneOf" in inner:
                    choices = [self.resolved(choice) for choice in inner["oneOf"]]
                    continue
                optional = kind.startswith("Option<")
                if optional:
                    inner = self.resolved(inner["anyOf"][0])
                properties |= inner.get("properties", {})
                required += [] if optional else inner.get("required", [])
                closed = inner.get("additionalProperties", closed) or closed
                continue
            name = words.get("rename", name)
            properties[name] = schema | ({"description": comment} if comment else {})
            if "skip_serializing_if" not in words:
                required.append(name)
        if choices:
            return {"oneOf": [self.closed(properties | choice["properties"], required + choice["required"]) for choice in choices]}
        return self.closed(properties, required, closed)

    @staticmethod
    def closed(properties, required, more=False):
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}

    def resolved(self, schema):
        """A schema, or what it refers to."""
        while "$ref" in schema:
            label = schema["$ref"].rsplit("/", 1)[1]
            schema = next(schema for known, schema in self.definitions.values() if known == label)
        return schema

    def enumeration(self, name, words, body, file, bound):
        if "$" in body:
            # Made by a macro from a list: `Variant = "name",`.
            call = re.search(r"^\w+! \{", file.text, re.M)
            return {"type": "string", "enum": re.findall(r'\w+ = "([^"]+)",', block(file.text, call.end() - 1))}
        variants = [peeled(variant) for variant in split(body)]
        rule = words.get("rename_all", "")
        if all(re.fullmatch(r"\w+", rest) for _, _, rest in variants) and "tag" not in words:
            return {"type": "string", "enum": [serde(attributes).get("rename", named(rest, rule)) for _, attributes, rest in variants]}
        choices = []
        for comment, attributes, rest in variants:
            variant = re.match(r"\w+", rest).group(0)
            inner = block(rest, len(variant) + (rest[len(variant)] == " ")) if len(rest) > len(variant) else ""
            tag = {words["tag"]: {"const": named(variant, rule)}} if "tag" in words else {}
            if not tag and "untagged" not in words:
                raise Unknown(f"{file.path}: {name} has no tag")
            if "(" in rest[: len(variant) + 1]:
                schema = self.resolved(self.of(inner, file, bound))
                if tag:
                    schema = self.closed(tag | schema["properties"], [*tag, *schema["required"]])
            else:
                schema = self.object(name, inner, file, bound, tag)
            choices.append(schema | ({"description": comment} if comment else {}))
        return {"oneOf": choices}

    def rows(self, owner, name, kind, file):
        """The schema of a row of figures, or of several; nothing for other types."""
        if kind == "&'a Grid":
            return {"type": "array", "items": self.grid({"cpus": "live_cpus"}.get(name, name))}
        if kind == "Value":
            return {"type": ["number", "string", "boolean", "null"]}
        if not re.search(r"\bObject\b", kind):
            return None
        path = self.filled(owner, name, file)
        where, fields = self.sources.list(path, file)
        row = self.row(list(fields.values()), where)
        if kind == "Object":
            return row
        if kind == "Option<Object>":
            return {"anyOf": [row, {"type": "null"}]}
        rows = {"type": "array", "items": row}
        return self.or_null(rows) if kind.startswith("Option<") else rows

    def grid(self, function):
        """A row of a table of the live view, by the fields that its function names."""
        file = self.sources.files[ROOT / REPORT / "top/mod.rs"]
        body = block(file.text, re.search(rf"\bfn {function}\([^{{]*(\{{)", file.text).start(1))
        return self.row([f"{module}::{constant}" for module, constant in re.findall(r"&(\w+)::([A-Z][A-Z0-9_]+)", body)], file)

    def row(self, values, file):
        """A row of figures with these fields."""
        properties = {}
        for value in values:
            field, kinds = self.sources.field(value, file)
            if not kinds:
                raise Unknown(f"{file.path}: what is {field}: {value[:100]!r}?")
            types = sorted({kind for figure in kinds for kind in FIGURES[figure]}, key=["string", "integer", "number", "boolean", "null"].index)
            if "number" in types and "integer" in types:
                types.remove("integer")
            properties[field] = {"type": types if len(types) > 1 else types[0]}
        return self.closed(properties, list(properties))

    @staticmethod
    def filled(owner, name, file):
        """The list whose fields a field of a struct is filled with, by what stands where the struct is made."""
        made = rf"\b{name}(?::| =)(?:(?!\b\w+: )[^;]){{0,400}}?Object::new\(([\w:]+),"
        for found in re.finditer(rf"(?<!struct )\b{owner} \{{", file.text):
            if used := re.search(made, block(file.text, found.end() - 1), re.S):
                return used.group(1)
        used = set(re.findall(made, file.text, re.S))
        if len(used) != 1:
            raise Unknown(f"{file.path}: which fields has {name} of {owner}? One of {used or 'none'}")
        return used.pop()
