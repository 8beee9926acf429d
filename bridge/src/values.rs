//! Bounded versions of what grows: the check of every new value, `*`, `~`, and values as Python
//! prints them.

use minijinja::value::{DynObject, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use crate::meter::{self, BoundedText};

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// minijinja's types are private; their names are not.
fn is_namespace(object: &DynObject) -> bool {
    object.type_name().contains("::namespace_object::")
}

/// Loops and macros: what keeps values of the template alive and may be kept by them.
fn is_loop_or_macro(object: &DynObject) -> bool {
    ["::loop_object::", "::macro_object::", "::closure_object::"]
        .iter()
        .any(|module| object.type_name().contains(module))
}

/// The result of a step: strings must be short enough, containers small and shallow enough, lazy
/// sequences become lists (as in Python, where slices and sums of lists are lists).
pub fn check(value: Value) -> Result<Value, Error> {
    let value = match value.kind() {
        ValueKind::String => {
            meter::check_text_bytes(value.as_str().map(str::len))?;
            value
        }
        ValueKind::Iterable => {
            let list = collect(&value)?;
            check_container(&list)?;
            list
        }
        ValueKind::Seq | ValueKind::Map => {
            check_container(&value)?;
            value
        }
        _ => value,
    };
    meter::check()?;
    Ok(value)
}

pub fn collect(value: &Value) -> Result<Value, Error> {
    let mut list = Vec::new();
    for item in value.try_iter()? {
        list.push(item);
        meter::check_value_count(list.len())?;
    }
    Ok(Value::from(list))
}

fn check_container(value: &Value) -> Result<(), Error> {
    match value.as_object() {
        // What a namespace holds was checked when it was stored; loops and macros hold nothing that
        // can be printed.
        Some(object) if is_namespace(object) || is_loop_or_macro(object) => Ok(()),
        _ => Walk::default().visit(value, 0),
    }
}

/// Walks a list or mapping and everything in it.
#[derive(Default)]
struct Walk {
    values: usize,
    text_bytes: usize,
}

impl Walk {
    fn visit(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.values += 1;
        meter::check_value_count(self.values)?;
        if let Some(text) = value.as_str() {
            self.text_bytes += text.len();
            return meter::check_contained_text(self.text_bytes);
        }
        let Some(object) = value.as_object() else {
            return Ok(());
        };
        // These could end up inside themselves and would never be freed.
        if is_namespace(object) || is_loop_or_macro(object) {
            return Err(invalid(
                "namespaces, macros and loops cannot be kept in lists, mappings or namespaces",
            ));
        }
        if depth >= meter::MAX_DEPTH {
            return Err(meter::limit_error(format!(
                "values are nested deeper than {}",
                meter::MAX_DEPTH
            )));
        }
        if value.kind() == ValueKind::Map {
            for (key, item) in object.try_iter_pairs().into_iter().flatten() {
                self.visit(&key, depth + 1)?;
                self.visit(&item, depth + 1)?;
            }
        } else {
            for item in object.try_iter().into_iter().flatten() {
                self.visit(&item, depth + 1)?;
            }
        }
        Ok(())
    }
}

/// Before a value is stored in a namespace or kept by a loop.
pub fn store(value: Value) -> Result<Value, Error> {
    if value.as_object().is_some() {
        Walk::default().visit(&value, 0)?;
    }
    Ok(value)
}

fn repeat_count(n: &Value) -> Result<usize, Error> {
    let n = i64::try_from(n.clone())
        .map_err(|_| invalid("a text or list can only be multiplied by a whole number"))?;
    Ok(usize::try_from(n).unwrap_or(0)) // as in Python, less than one gives nothing
}

/// `a * b`: numbers, a string or a list repeated.
pub fn mul(a: Value, b: Value) -> Result<Value, Error> {
    let (what, n) = if is_repeatable(&a) {
        (&a, &b)
    } else {
        (&b, &a)
    };
    if let Some(text) = what.as_str() {
        let n = repeat_count(n)?;
        meter::check_text_bytes(text.len().checked_mul(n))?;
        return Ok(Value::from(text.repeat(n)));
    }
    if is_repeatable(what) {
        let n = repeat_count(n)?;
        let items: Vec<Value> = what.try_iter()?.collect();
        meter::check_value_count(items.len().saturating_mul(n))?;
        let repeated = (0..n).flat_map(|_| items.iter().cloned());
        return check(Value::from(repeated.collect::<Vec<_>>()));
    }
    mul_numbers(&a, &b)
}

fn is_repeatable(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::String | ValueKind::Seq | ValueKind::Iterable
    )
}

fn mul_numbers(a: &Value, b: &Value) -> Result<Value, Error> {
    if let (Ok(x), Ok(y)) = (i128::try_from(a.clone()), i128::try_from(b.clone())) {
        let product = x
            .checked_mul(y)
            .ok_or_else(|| invalid(format!("unable to calculate {a} * {b}")))?;
        return Ok(match i64::try_from(product) {
            Ok(small) => Value::from(small),
            Err(_) => Value::from(product),
        });
    }
    match (f64::try_from(a.clone()), f64::try_from(b.clone())) {
        (Ok(x), Ok(y)) => Ok(Value::from(x * y)),
        _ => Err(invalid(format!(
            "tried to use * operator on unsupported types {} and {}",
            a.kind(),
            b.kind()
        ))),
    }
}

/// `a ~ b`
pub fn concat(a: Value, b: Value) -> Result<Value, Error> {
    let mut text = BoundedText::default();
    write_text(&mut text, &a)?;
    write_text(&mut text, &b)?;
    Ok(Value::from(text.into_string()))
}

/// As Python's str(): what `{{ value }}` prints.
pub fn write_text(out: &mut BoundedText, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => out.push(text),
        None if value.is_undefined() => Ok(()),
        None => write_repr(out, value),
    }
}

/// As Python's repr(): how values look inside a printed list.
fn write_repr(out: &mut BoundedText, value: &Value) -> Result<(), Error> {
    if let Some(text) = value.as_str() {
        return write_quoted(out, text);
    }
    match value.kind() {
        ValueKind::Undefined => out.push("Undefined"),
        ValueKind::Number if !value.is_integer() => match f64::try_from(value.clone()) {
            Ok(number) => out.push(&float_text(number)),
            Err(_) => out.push(&value.to_string()),
        },
        ValueKind::Seq | ValueKind::Iterable => {
            out.push("[")?;
            for (i, item) in value.try_iter()?.enumerate() {
                out.push(if i == 0 { "" } else { ", " })?;
                write_repr(out, &item)?;
            }
            out.push("]")
        }
        ValueKind::Map => {
            let pairs = value.as_object().and_then(|object| object.try_iter_pairs());
            out.push("{")?;
            for (i, (key, item)) in pairs.into_iter().flatten().enumerate() {
                out.push(if i == 0 { "" } else { ", " })?;
                write_repr(out, &key)?;
                out.push(": ")?;
                write_repr(out, &item)?;
            }
            out.push("}")
        }
        _ => out.push(&value.to_string()),
    }
}

fn write_quoted(out: &mut BoundedText, text: &str) -> Result<(), Error> {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push(quote);
    for c in text.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\\' => quoted.push_str("\\\\"),
            c if c == quote => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push(quote);
    out.push(&quoted)
}

/// A float as Python writes it: the shortest digits, an exponent below 1e-4 and from 1e16 on.
pub fn float_text(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = number.to_string();
        return if plain.contains('.') {
            plain
        } else {
            plain + ".0"
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
