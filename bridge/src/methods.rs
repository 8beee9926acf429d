//! Python's methods on strings, lists and mappings. What minijinja-contrib has is used from there;
//! here are the ones that could grow without bound, never end, or count bytes where Python counts
//! characters.

use minijinja::value::{from_args, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

use crate::meter::{self, BoundedText};
use crate::values;

const MAX_STRIP_SET_BYTES: usize = 256;

pub fn call(state: &State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    meter::check()?;
    if value.kind() == ValueKind::String {
        let text = value.as_str().unwrap_or("");
        if let Some(result) = string_method(text, method, args)? {
            return Ok(result);
        }
        match method {
            "format" => check_format(text, args)?,
            "strip" | "lstrip" | "rstrip" => check_strip_set(args.first())?,
            _ => {}
        }
    }
    pycompat::unknown_method_callback(state, value, method, args)
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "replace" => {
            let (old, new, count): (&str, &str, Option<i64>) = from_args(args)?;
            let count = count.and_then(|c| usize::try_from(c).ok());
            Value::from(replace(text, old, new, count)?)
        }
        "split" | "rsplit" => {
            let (separator, max): (Option<&str>, Option<i64>) = from_args(args)?;
            let max = max.and_then(|m| usize::try_from(m).ok());
            split(text, separator, max, method == "rsplit")?
        }
        "splitlines" => {
            let (keep_ends,): (Option<bool>,) = from_args(args)?;
            split_lines(text, keep_ends.unwrap_or(false))?
        }
        "join" => {
            let (items,): (&Value,) = from_args(args)?;
            Value::from(join(items, text)?)
        }
        "count" => {
            let (what,): (&str,) = from_args(args)?;
            Value::from(match what {
                "" => text.chars().count() + 1,
                _ => text.matches(what).count(),
            })
        }
        "find" | "rfind" => {
            let (what,): (&str,) = from_args(args)?;
            let byte = if method == "find" {
                text.find(what)
            } else {
                text.rfind(what)
            };
            Value::from(byte.map_or(-1, |b| text[..b].chars().count() as i64))
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "partition" => {
            let (separator,): (&str,) = from_args(args)?;
            match text.split_once(separator) {
                Some((before, after)) => list([before, separator, after].into_iter())?,
                None => list([text, "", ""].into_iter())?,
            }
        }
        "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            match text.rsplit_once(separator) {
                Some((before, after)) => list([before, separator, after].into_iter())?,
                None => list(["", "", text].into_iter())?,
            }
        }
        _ => return Ok(None),
    }))
}

/// Replaces the first `count` (or all) occurrences; an empty `old` stands between all characters.
pub fn replace(text: &str, old: &str, new: &str, count: Option<usize>) -> Result<String, Error> {
    let found = text.matches(old).count().min(count.unwrap_or(usize::MAX));
    let added = new.len().checked_mul(found);
    // The replaced parts are gone, but not before the new text exists.
    meter::check_text_bytes(added.and_then(|a| a.checked_add(text.len())))?;
    Ok(text.replacen(old, new, found))
}

/// The items with `separator` between them.
pub fn join(items: &Value, separator: &str) -> Result<String, Error> {
    let mut out = BoundedText::default();
    for (i, item) in items.try_iter()?.enumerate() {
        out.push(if i == 0 { "" } else { separator })?;
        values::write_text(&mut out, &item)?;
    }
    Ok(out.into_string())
}

fn list<'a>(parts: impl Iterator<Item = &'a str>) -> Result<Value, Error> {
    let mut items = Vec::new();
    for part in parts {
        items.push(Value::from(part));
        meter::check_value_count(items.len())?;
    }
    Ok(Value::from(items))
}

fn split(
    text: &str,
    separator: Option<&str>,
    max: Option<usize>,
    from_right: bool,
) -> Result<Value, Error> {
    match (separator, max, from_right) {
        (Some(""), _, _) => Err(Error::new(ErrorKind::InvalidOperation, "empty separator")),
        (Some(s), Some(n), false) => list(text.splitn(n.saturating_add(1), s)),
        (Some(s), Some(n), true) => {
            meter::check_value_count(text.matches(s).count().min(n))?;
            let mut parts: Vec<&str> = text.rsplitn(n.saturating_add(1), s).collect();
            parts.reverse();
            list(parts.into_iter())
        }
        (Some(s), None, _) => list(text.split(s)),
        (None, None, _) => list(text.split_whitespace()),
        (None, Some(n), false) => {
            let mut parts = Vec::new();
            let mut rest = text.trim_start();
            while !rest.is_empty() && parts.len() < n {
                meter::check_value_count(parts.len())?;
                let (part, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                parts.push(part);
                rest = after.trim_start();
            }
            parts.extend((!rest.is_empty()).then_some(rest));
            list(parts.into_iter())
        }
        (None, Some(n), true) => {
            let mut parts = Vec::new();
            let mut rest = text.trim_end();
            while !rest.is_empty() && parts.len() < n {
                meter::check_value_count(parts.len())?;
                let (before, part) = rest.rsplit_once(char::is_whitespace).unwrap_or(("", rest));
                parts.push(part);
                rest = before.trim_end();
            }
            parts.extend((!rest.is_empty()).then_some(rest));
            parts.reverse();
            list(parts.into_iter())
        }
    }
}

fn split_lines(text: &str, keep_ends: bool) -> Result<Value, Error> {
    // "\r\n" is one end; a last end opens no further line.
    list(
        text.split_inclusive(['\n', '\r'])
            .scan(0usize, |at, part| {
                let begin = *at;
                *at += part.len();
                Some((begin, part))
            })
            .filter_map(|(begin, part)| {
                let follows_return = begin > 0 && text.as_bytes()[begin - 1] == b'\r';
                if part == "\n" && follows_return {
                    return None; // belongs to the line before
                }
                let end = begin + part.len();
                let joined = part.ends_with('\r') && text[end..].starts_with('\n');
                let whole = &text[begin..end + usize::from(joined)];
                Some(if keep_ends {
                    whole
                } else {
                    whole.trim_end_matches(['\n', '\r'])
                })
            }),
    )
}

/// Stripping compares every character with all of the set.
pub fn check_strip_set(set: Option<&Value>) -> Result<(), Error> {
    match set.and_then(Value::as_str) {
        Some(set) if set.len() > MAX_STRIP_SET_BYTES => Err(meter::limit_error(format!(
            "at most {MAX_STRIP_SET_BYTES} bytes of characters can be stripped"
        ))),
        _ => Ok(()),
    }
}

/// Bounds what a format string may write: every placeholder might print the longest argument, and
/// a width can ask for any number of blanks.
pub fn check_format(format: &str, args: &[Value]) -> Result<(), Error> {
    let placeholders = format.matches(['%', '{']).count();
    let mut longest = 0;
    for arg in args {
        let mut text = BoundedText::default();
        values::write_text(&mut text, arg)?;
        longest = longest.max(text.into_string().len());
    }
    let mut widest = 0usize;
    for number in format.split(|c: char| !c.is_ascii_digit()) {
        widest = widest.max(if number.len() > 9 {
            usize::MAX
        } else {
            number.parse().unwrap_or(0)
        });
    }
    if format.contains('*') {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "a width cannot be an argument",
        ));
    }
    let bytes = longest
        .checked_add(widest)
        .and_then(|l| l.checked_mul(placeholders));
    meter::check_text_bytes(bytes.and_then(|b| b.checked_add(format.len())))
}
