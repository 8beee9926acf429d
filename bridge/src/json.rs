//! The filter `tojson`, as transformers defines it for chat templates: Python's json.dumps without
//! HTML escaping and, unless asked, without ASCII escaping.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use crate::meter::BoundedText;
use crate::values::float_text;

const MAX_INDENT: usize = 100;
/// Private-use planes: the engine marks text of messages with them and takes the marks off again, so
/// they are never escaped.
const MESSAGE_MARKS: char = '\u{F0000}';

struct Layout {
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    ascii_only: bool,
    sort_keys: bool,
}

/// `value|tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`
pub fn tojson(
    value: Value,
    ensure_ascii: Option<bool>,
    indent: Option<Value>,
    options: Kwargs,
) -> Result<Value, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => options.get::<Option<Value>>("indent")?,
    };
    let indent = indent.filter(|v| !v.is_none() && !v.is_undefined());
    let indent = indent.map(|v| indent_text(&v)).transpose()?;
    let separators = options.get::<Option<Vec<String>>>("separators")?;
    let (item_separator, key_separator) = match separators.as_deref() {
        Some([item, key]) => (item.clone(), key.clone()),
        Some(_) => return Err(wrong("separators must be two texts")),
        // As in Python: no trailing blank where every item has its own line.
        None if indent.is_some() => (",".into(), ": ".into()),
        None => (", ".into(), ": ".into()),
    };
    let ensure_ascii = match ensure_ascii {
        Some(flag) => Some(flag),
        None => options.get::<Option<bool>>("ensure_ascii")?,
    };
    let layout = Layout {
        indent,
        item_separator,
        key_separator,
        ascii_only: ensure_ascii.unwrap_or(false),
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    };
    options.assert_all_used()?;
    let mut out = BoundedText::default();
    write(&mut out, &layout, &value, 0)?;
    Ok(Value::from(out.into_string()))
}

fn wrong(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("tojson: {message}"))
}

fn indent_text(indent: &Value) -> Result<String, Error> {
    if let Some(text) = indent.as_str() {
        return Ok(text.to_string());
    }
    match indent.as_usize() {
        Some(width) if width <= MAX_INDENT => Ok(" ".repeat(width)),
        _ => Err(wrong("indent must be a text or a number up to 100")),
    }
}

fn write(out: &mut BoundedText, layout: &Layout, value: &Value, depth: usize) -> Result<(), Error> {
    if let Some(text) = value.as_str() {
        return write_string(out, layout, text);
    }
    match value.kind() {
        ValueKind::None => out.push("null"),
        ValueKind::Bool => out.push(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push(&number_text(value)),
        ValueKind::Seq | ValueKind::Iterable => {
            let mut items = value.try_iter()?.peekable();
            if items.peek().is_none() {
                return out.push("[]");
            }
            out.push("[")?;
            for (i, item) in items.enumerate() {
                start_item(out, layout, i, depth + 1)?;
                write(out, layout, &item, depth + 1)?;
            }
            new_line(out, layout, depth)?;
            out.push("]")
        }
        ValueKind::Map => write_map(out, layout, value, depth),
        kind => Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("tojson: a value of type {kind} cannot be written as JSON"),
        )),
    }
}

fn write_map(
    out: &mut BoundedText,
    layout: &Layout,
    map: &Value,
    depth: usize,
) -> Result<(), Error> {
    let pairs = map.as_object().and_then(|object| object.try_iter_pairs());
    let mut pairs: Vec<_> = pairs.into_iter().flatten().collect();
    if pairs.is_empty() {
        return out.push("{}");
    }
    if layout.sort_keys {
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
    }
    out.push("{")?;
    for (i, (key, item)) in pairs.iter().enumerate() {
        start_item(out, layout, i, depth + 1)?;
        match key.kind() {
            ValueKind::String => write_string(out, layout, key.as_str().unwrap_or(""))?,
            ValueKind::None => out.push("\"null\"")?,
            ValueKind::Bool => out.push(if key.is_true() {
                "\"true\""
            } else {
                "\"false\""
            })?,
            _ => write_string(out, layout, &number_text(key))?,
        }
        out.push(&layout.key_separator)?;
        write(out, layout, item, depth + 1)?;
    }
    new_line(out, layout, depth)?;
    out.push("}")
}

fn start_item(out: &mut BoundedText, layout: &Layout, i: usize, depth: usize) -> Result<(), Error> {
    if i > 0 {
        out.push(&layout.item_separator)?;
    }
    new_line(out, layout, depth)
}

fn new_line(out: &mut BoundedText, layout: &Layout, depth: usize) -> Result<(), Error> {
    let Some(indent) = &layout.indent else {
        return Ok(());
    };
    out.push("\n")?;
    for _ in 0..depth {
        out.push(indent)?;
    }
    Ok(())
}

fn number_text(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    match f64::try_from(value.clone()).map(float_text).as_deref() {
        Ok("nan") => "NaN".into(),
        Ok("inf") => "Infinity".into(),
        Ok("-inf") => "-Infinity".into(),
        Ok(text) => text.to_string(),
        Err(_) => value.to_string(),
    }
}

fn write_string(out: &mut BoundedText, layout: &Layout, text: &str) -> Result<(), Error> {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            c if c < ' ' || (layout.ascii_only && !c.is_ascii() && c < MESSAGE_MARKS) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    quoted.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    out.push(&quoted)
}
