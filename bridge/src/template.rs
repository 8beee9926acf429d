//! One compiled chat template and its rendering.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::time::Duration;

use minijinja::machinery::{make_string_output, Vm};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};

use crate::environment::{self, Raised};
use crate::instrument::{self, Program};
use crate::meter::{self, LimitExceeded, Metered};

const MAX_SOURCE_BYTES: usize = 1 << 20;
const MAX_MESSAGE_BYTES: usize = 1000;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    Ok = 0,
    Raised = 1,
    Syntax = 2,
    Limit = 3,
    Other = 4,
    Internal = 5,
}

/// What went wrong, and one sentence about it.
pub struct Failure {
    pub status: Status,
    pub message: String,
}

impl Failure {
    /// A message may quote the template or what it computed; a reader needs only its beginning.
    pub fn new(status: Status, message: impl Into<String>) -> Failure {
        let mut message = message.into();
        if message.len() > MAX_MESSAGE_BYTES {
            let is_boundary = |at: &usize| message.is_char_boundary(*at);
            let end = (0..=MAX_MESSAGE_BYTES).rev().find(is_boundary);
            message.truncate(end.unwrap_or(0));
            message.push('…');
        }
        Failure { status, message }
    }
}

pub struct Limits {
    pub max_output_bytes: usize,
    pub max_memory_bytes: usize,
    pub max_time: Duration,
}

pub struct Template {
    program: Program<'static>, // borrows `source`; declared, so dropped, before it
    environment: Environment<'static>,
    _source: Box<str>,
}

impl Template {
    pub fn compile(source: &[u8]) -> Result<Template, Failure> {
        if source.len() > MAX_SOURCE_BYTES {
            return Err(Failure::new(
                Status::Limit,
                format!(
                    "the template is {} bytes long, at most {MAX_SOURCE_BYTES} are allowed",
                    source.len()
                ),
            ));
        }
        let source = std::str::from_utf8(source).map_err(|error| {
            let message = format!("invalid UTF-8 at byte {}", error.valid_up_to());
            Failure::new(Status::Syntax, message)
        })?;
        let source: Box<str> = as_minijinja_reads_it(source).into_boxed_str();
        // SAFETY: the text lives on the heap, never changes, and is dropped after `program`, the
        // only thing that borrows it; moving the box does not move the text.
        let borrowed: &'static str = unsafe { &*std::ptr::from_ref::<str>(&source) };
        let program = instrument::compile(borrowed).map_err(|error| describe(&error))?;
        Ok(Template {
            program,
            environment: environment::create(),
            _source: source,
        })
    }

    /// `variables` is a JSON object: everything the template can see.
    pub fn render(&self, variables: &[u8], limits: &Limits, now: i64) -> Result<String, Failure> {
        let root: BTreeMap<String, Value> = serde_json::from_slice(variables)
            .map_err(|error| Failure::new(Status::Other, format!("variables: {error}")))?;
        let root = Value::from_iter(root);
        let metered = Metered::start(
            limits.max_memory_bytes,
            limits.max_time,
            limits.max_output_bytes,
            now,
        );
        let mut text = String::new();
        let result = Vm::new(&self.environment).eval(
            &self.program.instructions,
            root,
            &self.program.blocks,
            &mut make_string_output(&mut text),
            AutoEscape::None,
        );
        let outcome = result
            .map(|_| ())
            .and_then(|()| meter::check_text_bytes(Some(text.len())))
            .map_err(|error| describe(&error));
        drop(metered);
        outcome.map(|()| text)
    }
}

fn has_source<T: std::error::Error + 'static>(error: &Error) -> bool {
    let mut next = error.source();
    while let Some(source) = next {
        if source.is::<T>() {
            return true;
        }
        next = source.source();
    }
    false
}

fn describe(error: &Error) -> Failure {
    // Errors inside filters and macros arrive wrapped; the innermost one says what happened.
    let mut inner = error;
    while let Some(source) = inner.source().and_then(|s| s.downcast_ref::<Error>()) {
        inner = source;
    }
    let detail = inner
        .detail()
        .map_or_else(|| inner.kind().to_string(), str::to_string);
    if has_source::<Raised>(error) {
        return Failure::new(Status::Raised, detail);
    }
    let limit = has_source::<LimitExceeded>(error)
        || inner.kind() == ErrorKind::OutOfFuel
        || matches!(
            detail.as_str(),
            "recursion limit exceeded" | "range has too many elements"
        );
    let status = match inner.kind() {
        _ if limit => Status::Limit,
        ErrorKind::SyntaxError => Status::Syntax,
        _ => Status::Other,
    };
    let text = match inner.kind() {
        ErrorKind::OutOfFuel => "the template takes too many steps".to_string(),
        ErrorKind::InvalidOperation | ErrorKind::SyntaxError => detail,
        kind if inner.detail().is_some() => format!("{kind}: {detail}"),
        _ => detail,
    };
    match error.line() {
        Some(line) => Failure::new(status, format!("line {line}: {text}")),
        None => Failure::new(status, text),
    }
}

/// Brings a source into the form that minijinja reads as Jinja2 reads the original:
/// - line ends are "\n";
/// - `{% generation %} … {% endgeneration %}`, which marks the assistant's words for training
///   (transformers knows it, Jinja does not), is a block that always runs;
/// - the line end after `{% raw %}` stays, which minijinja takes away as after other tags.
fn as_minijinja_reads_it(source: &str) -> String {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let Some(inner_bytes) = tag[2..].find("%}") else {
            rest = tag;
            break;
        };
        let (tag, after) = tag.split_at(2 + inner_bytes);
        let word = tag[2..].trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        match word {
            "generation" => out.push_str(&tag.replacen("generation", "if true", 1)),
            "endgeneration" => out.push_str(&tag.replacen("endgeneration", "endif", 1)),
            _ => out.push_str(tag),
        }
        rest = after;
        if word == "raw" && after.starts_with("%}\n") {
            out.push_str("%}\n");
            rest = &after[2..];
        }
    }
    out.push_str(rest);
    out
}
