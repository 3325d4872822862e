//! JSON schemas of all documents, and the page of the book that lists them; the program `becalm-schemas` writes both.
//!
//! They are generated from the serialized types. Each is closed: a document with an additional, missing or renamed field is rejected.

use std::fs;
use std::io;
use std::path::Path;

use becalm_model as model;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Serializer, Value, json};

use crate::record::json::{DetoursDocument, RunDocument, RunTables};
use crate::{audit, check, compare, config, doctor, law, mpi, predict};
use crate::{sweep, together, work};

/// A document, and where readers find it.
#[derive(Debug)]
pub struct Document {
    /// The name in its `schema`, without the version.
    pub name: &'static str,
    /// The commands that print it, or the file that contains it.
    pub by: &'static str,
    /// A description of its content.
    pub content: &'static str,
    /// Generates its schema with schemars.
    pub schema: fn() -> Value,
}

/// The documents of a crate, one per line: `"name": Type, "printed or stored by", "what it says";`.
#[macro_export]
macro_rules! documents {
    ($($name:literal: $type:ty, $by:literal, $content:literal;)+) => {
        /// The documents of this crate.
        pub const DOCUMENTS: &[$crate::schemas::Document] = &[$($crate::schemas::Document {
            name: $name,
            by: $by,
            content: $content,
            schema: $crate::schemas::schema::<$type>,
        }),+];
    };
}

documents! {
    "audit": audit::AuditDocument, "becalm --json", "what can be seen on this machine";
    "config": config::ConfigReport, "becalm config", "which defaults are set, and where";
    "doctor": doctor::DoctorReport, "becalm doctor", "what a report of a bug needs to know";
    "report": RunDocument<RunTables>, "becalm record, becalm report RUN", "a recording";
    "sources": RunDocument<RunTables>, "becalm report RUN --sources", "a recording, with the sources of each CPU";
    "detours": DetoursDocument, "becalm detours RUN --longest N", "single detours and what was in them";
    "together": together::TogetherDocument, "becalm detours RUN --together", "what comes at once on several CPUs";
    "check": check::CheckDocument, "becalm check", "whether limits hold, CPU by CPU";
    "compare": compare::json::CompareDocument, "becalm compare A B", "what differs between runs";
    "compare-jobs": mpi::jobs::JobsDocument, "becalm compare JOB JOB", "comparison of becalm-mpi jobs";
    "work": work::json::WorkDocument, "becalm work, becalm report RUN", "samples of fixed work or fixed time";
    "predict": predict::PredictDocument, "becalm predict NOISE", "what noise costs a job";
    "predict-sweep": sweep::predict::SweepDocument, "becalm predict with lists", "the same for many noises";
    "law": law::LawDocument, "becalm predict --law", "the noise law";
    "law-sweep": sweep::law::LawSweepDocument, "becalm predict --law with lists", "the noise law for many noises";
    "mpi": mpi::run::JobDocument, "becalm-mpi, becalm report JOB", "the phases of a parallel job";
    "mpi-sweep": mpi::grains::GrainsDocument, "becalm-mpi --grain LIST", "jobs of several grains";
    "mpi-validate": mpi::validate::ValidateDocument, "becalm-mpi validate", "predictions compared with a job";
    "mpi-validate-sweep": mpi::validate::sweep::SweepDocument, "becalm-mpi validate --grain LIST", "the same for several grains";
    "network": model::network::NetworkDoc, "becalm-mpi network", "what messages between ranks cost, for becalm predict --network";
    "run": model::node::NodeDoc, "runs/node=HOST.json of a recording", "what was recorded, where and how";
    "run-summary": model::digest::DigestDoc, "runs/node=HOST.json of a summary form", "the same, and what the detours come to";
    "mpi-run": model::phases::PhasesDoc, "runs/node=HOST.json of becalm-mpi", "the ranks of a job on a node";
}

/// The schema of a type, from schemars.
pub fn schema<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>().into()
}

/// Writes the documents' schemas into `schemas` of the book, and their table into its page. Fails if a file cannot be read or written.
pub fn write(book: &Path, documents: &[&Document]) -> io::Result<()> {
    let schemas = book.join("schemas");
    for file in fs::read_dir(&schemas)? {
        fs::remove_file(file?.path())?;
    }
    for document in documents {
        let mut text = Vec::new();
        document
            .finished()
            .serialize(&mut Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b" ")))?;
        text.push(b'\n');
        fs::write(schemas.join(format!("{}-1.json", document.name)), text)?;
    }
    let page = book.join("reference/documents.md");
    let text = fs::read_to_string(&page)?;
    fs::write(
        &page,
        with_table(&text, documents).ok_or_else(|| io::Error::other("the page has no place for the table"))?,
    )
}

/// The page with its table regenerated; `None` if it has no place for one.
fn with_table(page: &str, documents: &[&Document]) -> Option<String> {
    const START: &str = "<!-- documents -->\n";
    const END: &str = "<!-- end of documents -->\n";
    let (head, rest) = page.split_once(START)?;
    let (_, tail) = rest.split_once(END)?;
    let rows: String = documents.iter().map(|document| document.row()).collect();
    let table = format!("| document | printed or stored by | what it says |\n| --- | --- | --- |\n{rows}");
    Some(format!("{head}{START}{table}{END}{tail}"))
}

impl Document {
    /// Its line in the table.
    fn row(&self) -> String {
        let Self { name, by, content, .. } = self;
        let by: Vec<String> = by.split(", ").map(quoted).collect();
        format!("| [`becalm.{name}/1`](../schemas/{name}-1.json) | {} | {content} |\n", by.join(", "))
    }

    /// Its schema, closed, with its name and a description.
    fn finished(&self) -> Value {
        let Self { name, by, content, .. } = self;
        let mut schema = (self.schema)();
        let definitions = schema["$defs"].take();
        finish(&mut schema, &definitions, true);
        let printed = if by.contains(".json") || by.contains("--json") { "" } else { " --json" };
        schema["$id"] = json!(format!("urn:becalm:{name}:1"));
        schema["title"] = json!(format!("becalm.{name}/1"));
        schema["description"] = json!(format!("{by}{printed}: {content}."));
        schema["properties"]["schema"] = json!({ "type": "string", "const": format!("becalm.{name}/1") });
        require_schema(&mut schema["required"]);
        schema["$defs"] = used(&schema, &definitions);
        schema
    }
}

/// A command or a file in the page's markup, with the words after its name.
fn quoted(by: &str) -> String {
    let end = by.find(" with lists").or_else(|| by.find(" of ")).unwrap_or(by.len());
    format!("`{}`{}", &by[..end], &by[end..])
}

/// Adds `schema` to the required fields.
fn require_schema(required: &mut Value) {
    let mut names = required.as_array().cloned().unwrap_or_default();
    names.retain(|name| name != "schema");
    names.insert(0, json!("schema"));
    *required = Value::Array(names);
}

/// The definitions that a schema uses, directly or through others.
fn used(schema: &Value, definitions: &Value) -> Value {
    let mut used = Map::new();
    let Some(definitions) = definitions.as_object() else { return Value::Object(used) };
    loop {
        let text = format!("{schema}{}", Value::Object(used.clone()));
        let wanted = |name: &str| text.contains(&format!("\"#/$defs/{name}\""));
        let Some(name) = definitions.keys().find(|name| wanted(name) && !used.contains_key(*name)) else {
            return Value::Object(used);
        };
        let mut definition = definitions[name].clone();
        finish(&mut definition, &Value::Object(definitions.clone()), true);
        used.insert(name.clone(), definition);
    }
}

/// Adapts a schema to the documents: numbers that are not finite are `null`, and there are no other fields. A part of another schema is not `closed`.
fn finish(schema: &mut Value, definitions: &Value, closed: bool) {
    let Some(fields) = schema.as_object_mut() else { return };
    merge_reference(fields, definitions);
    fields.remove("format");
    if fields.get("type").is_some_and(|kind| kind == "number") {
        fields.insert("type".to_owned(), json!(["number", "null"]));
    }
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = plain(text);
    }
    let has_parts = ["oneOf", "anyOf", "allOf"].iter().any(|parts| fields.contains_key(*parts));
    let has_fields = fields.contains_key("properties");
    if closed && has_fields && !fields.contains_key("additionalProperties") {
        let key = if has_parts { "unevaluatedProperties" } else { "additionalProperties" };
        fields.insert(key.to_owned(), json!(false));
    }
    for (key, part) in fields.iter_mut() {
        match (key.as_str(), part) {
            ("properties", Value::Object(parts)) => parts.values_mut().for_each(|part| finish(part, definitions, true)),
            ("oneOf" | "anyOf" | "allOf", Value::Array(parts)) => {
                parts.iter_mut().for_each(|part| finish(part, definitions, closed && !has_fields));
            }
            ("prefixItems", Value::Array(parts)) => parts.iter_mut().for_each(|part| finish(part, definitions, true)),
            ("items" | "additionalProperties", part) => finish(part, definitions, true),
            _ => {}
        }
    }
}

/// Merges a definition into a schema that refers to it and has fields of its own, like the variants of tagged enums.
fn merge_reference(fields: &mut Map<String, Value>, definitions: &Value) {
    if !fields.contains_key("properties") {
        return;
    }
    let Some(Value::String(reference)) = fields.remove("$ref") else { return };
    let definition = &definitions[reference.trim_start_matches("#/$defs/")];
    let Some(definition) = definition.as_object() else { return };
    for (key, value) in definition {
        match (fields.get_mut(key), value) {
            (Some(Value::Object(own)), Value::Object(more)) => own.extend(more.clone()),
            (Some(Value::Array(own)), Value::Array(more)) => own.extend(more.clone()),
            (Some(_), _) => {}
            (None, value) => {
                fields.insert(key.clone(), value.clone());
            }
        }
    }
}

/// A doc comment in the terms of a document: one line, `null` for Rust's `None`, and no links.
fn plain(comment: &str) -> String {
    let line = comment.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut parts = line.split("[`");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (path, rest) = part.split_once("`]").unwrap_or((part, ""));
        let name = path.rsplit("::").next().unwrap_or(path);
        let rest = rest.strip_prefix('(').and_then(|target| target.split_once(')')).map_or(rest, |(_, rest)| rest);
        text.push_str(&format!("`{name}`{rest}"));
    }
    text.replace("`None`", "`null`").replace("`Some`", "a value")
}
