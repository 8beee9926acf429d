//! What a chat template finds: filters, tests, functions and methods, each behind the budget.

use std::fmt;

use minijinja::functions::Function;
use minijinja::value::{from_args, FunctionArgs, FunctionResult, Kwargs, Rest, ValueKind};
use minijinja::{
    filters, functions, tests, AutoEscape, Environment, Error, ErrorKind, State, Value,
};

use crate::instrument::{CHANGED, CHECK, CONCAT, MUL, STORE, TICK};
use crate::meter::{self, BoundedText, MAX_VALUES};
use crate::{clock, json, methods, values};

/// Steps of a template and of the checks between them, which are about as many. A chat of a thousand
/// messages takes some hundred thousand.
const FUEL: u64 = 2_000_000;
/// A macro call costs four of these and a few hundred bytes of stack each.
const RECURSION_LIMIT: usize = 400;
const MAX_INDENT: usize = 1000;

/// Marks an error as the template's own: raise_exception(message).
#[derive(Debug)]
pub struct Raised;

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("raised by the template")
    }
}

impl std::error::Error for Raised {}

pub fn create() -> Environment<'static> {
    let mut env = Environment::empty();
    env.set_fuel(Some(FUEL));
    env.set_recursion_limit(RECURSION_LIMIT);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_unknown_method_callback(methods::call);
    env.set_formatter(|out, state, value| {
        if value.kind() == ValueKind::String || state.auto_escape() != AutoEscape::None {
            return minijinja::escape_formatter(out, state, value);
        }
        let mut text = BoundedText::default();
        values::write_text(&mut text, value)?;
        out.write_str(&text.into_string()).map_err(Error::from)
    });
    add_checks(&mut env);
    add_functions(&mut env);
    add_filters(&mut env);
    add_tests(&mut env);
    env
}

fn add_checks(env: &mut Environment<'static>) {
    env.add_function(CHECK, values::check);
    env.add_function(STORE, values::store);
    env.add_function(MUL, values::mul);
    env.add_function(CONCAT, values::concat);
    env.add_function(TICK, meter::check);
    // loop.changed keeps its arguments: a loop among them would never be freed.
    env.add_function(CHANGED, |state: &State, args: Rest<Value>| {
        let (object, kept) = args
            .split_first()
            .ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
        for value in kept {
            values::store(value.clone())?;
        }
        object.call_method(state, "changed", kept)
    });
}

fn add_functions(env: &mut Environment<'static>) {
    env.add_function("range", functions::range);
    env.add_function("dict", functions::dict);
    env.add_function("namespace", |defaults: Option<Value>| {
        if let Some(defaults) = &defaults {
            values::store(defaults.clone())?;
        }
        functions::namespace(defaults)
    });
    env.add_function("strftime_now", |format: &str| clock::strftime_now(format));
    env.add_function(
        "raise_exception",
        |message: Option<Value>| -> Result<Value, Error> {
            let mut text = BoundedText::default();
            values::write_text(&mut text, &message.unwrap_or_default())?;
            Err(Error::new(ErrorKind::InvalidOperation, text.into_string()).with_source(Raised))
        },
    );
}

/// A filter of minijinja's behind the budget. It may take a text apart into characters, or make as
/// many lists as a number says, so neither may be large.
fn add_filter<F, Rv, Args>(env: &mut Environment<'static>, name: &'static str, filter: F)
where
    F: Function<Rv, Args>,
    Rv: FunctionResult,
    Args: for<'a> FunctionArgs<'a>,
{
    let takes_text_whole = matches!(
        name,
        "safe"
            | "escape"
            | "e"
            | "lower"
            | "upper"
            | "title"
            | "capitalize"
            | "length"
            | "count"
            | "reverse"
            | "trim"
            | "default"
            | "d"
            | "int"
            | "float"
            | "bool"
            | "first"
            | "last"
    );
    let filter = Value::from_function(filter);
    env.add_filter(name, move |state: &State, args: Rest<Value>| {
        meter::check()?;
        if name == "trim" {
            methods::check_strip_set(args.get(1))?;
        }
        if !takes_text_whole {
            for arg in args.iter() {
                meter::check_value_count(arg.as_str().map_or(0, str::len))?;
                let number = i64::try_from(arg.clone()).unwrap_or(0);
                if !matches!(name, "abs" | "round") && number > MAX_VALUES as i64 {
                    return Err(meter::limit_error(format!("{name}: {number} is too large")));
                }
            }
        }
        filter.call(state, &args)
    });
}

fn add_filters(env: &mut Environment<'static>) {
    macro_rules! guarded {
        ($($name:literal => $filter:path),* $(,)?) => {
            $(add_filter(env, $name, $filter);)*
        };
    }
    guarded! {
        "safe" => filters::safe, "escape" => filters::escape, "e" => filters::escape,
        "lower" => filters::lower, "upper" => filters::upper, "title" => filters::title,
        "capitalize" => filters::capitalize, "length" => filters::length,
        "count" => filters::length, "dictsort" => filters::dictsort, "items" => filters::items,
        "reverse" => filters::reverse, "trim" => filters::trim, "default" => filters::default,
        "d" => filters::default, "round" => filters::round, "abs" => filters::abs,
        "int" => filters::int, "float" => filters::float, "attr" => filters::attr,
        "first" => filters::first, "last" => filters::last, "min" => filters::min,
        "max" => filters::max, "sort" => filters::sort, "list" => filters::list,
        "bool" => filters::bool, "batch" => filters::batch, "slice" => filters::slice,
        "sum" => filters::sum, "select" => filters::select, "reject" => filters::reject,
        "selectattr" => filters::selectattr, "rejectattr" => filters::rejectattr,
        "map" => filters::map, "groupby" => filters::groupby, "unique" => filters::unique,
    }
    env.add_filter("tojson", json::tojson);
    env.add_filter("string", |value: Value| {
        let mut text = BoundedText::default();
        values::write_text(&mut text, &value)?;
        Ok::<_, Error>(Value::from(text.into_string()))
    });
    env.add_filter("replace", |text: Value, rest: Rest<Value>| {
        let (old, new, count): (&str, &str, Option<i64>) = from_args(&rest)?;
        let mut whole = BoundedText::default();
        values::write_text(&mut whole, &text)?;
        let count = count.and_then(|c| usize::try_from(c).ok());
        methods::replace(&whole.into_string(), old, new, count)
    });
    env.add_filter("join", join);
    env.add_filter("indent", indent);
    env.add_filter(
        "format",
        |state: &State, format: &str, args: Rest<Value>| {
            methods::check_format(format, &args)?;
            filters::format(state, &Value::from(format), args)
        },
    );
}

fn join(
    items: Value,
    separator: Option<String>,
    attribute: Option<String>,
    options: Kwargs,
) -> Result<String, Error> {
    let separator = match separator {
        Some(separator) => separator,
        None => options.get::<Option<String>>("d")?.unwrap_or_default(),
    };
    let attribute = match attribute {
        Some(attribute) => Some(attribute),
        None => options.get::<Option<String>>("attribute")?,
    };
    options.assert_all_used()?;
    let Some(attribute) = attribute else {
        return methods::join(&items, &separator);
    };
    let mut picked = Vec::new();
    for item in items.try_iter()? {
        picked.push(item.get_attr(&attribute)?);
        meter::check_value_count(picked.len())?;
    }
    methods::join(&Value::from(picked), &separator)
}

/// `text|indent(width=4, first=False, blank=False)` as in Jinja2; width may be a text.
fn indent(
    text: String,
    width: Option<Value>,
    first: Option<bool>,
    blank: Option<bool>,
    options: Kwargs,
) -> Result<String, Error> {
    let width = match width {
        Some(width) => Some(width),
        None => options.get::<Option<Value>>("width")?,
    };
    let first = first
        .or(options.get::<Option<bool>>("first")?)
        .unwrap_or(false);
    let blank = blank
        .or(options.get::<Option<bool>>("blank")?)
        .unwrap_or(false);
    options.assert_all_used()?;
    let margin = match &width {
        None => "    ".to_string(),
        Some(width) => match (width.as_str(), width.as_usize()) {
            (Some(text), _) => text.to_string(),
            (None, Some(count)) if count <= MAX_INDENT => " ".repeat(count),
            _ => return Err(meter::limit_error("indent: at most 1000 columns")),
        },
    };
    let mut out = BoundedText::default();
    for (i, line) in text.split('\n').enumerate() {
        out.push(if i == 0 { "" } else { "\n" })?;
        if if i == 0 {
            first
        } else {
            blank || !line.is_empty()
        } {
            out.push(&margin)?;
        }
        out.push(line)?;
    }
    Ok(out.into_string())
}

fn add_test<F, Rv, Args>(env: &mut Environment<'static>, name: &'static str, test: F)
where
    F: Function<Rv, Args>,
    Rv: FunctionResult,
    Args: for<'a> FunctionArgs<'a>,
{
    let test = Value::from_function(test);
    env.add_test(name, move |state: &State, args: Rest<Value>| {
        meter::check()?;
        test.call(state, &args)
    });
}

fn add_tests(env: &mut Environment<'static>) {
    macro_rules! guarded {
        ($($name:literal => $test:path),* $(,)?) => {
            $(add_test(env, $name, $test);)*
        };
    }
    guarded! {
        "undefined" => tests::is_undefined, "defined" => tests::is_defined,
        "none" => tests::is_none, "boolean" => tests::is_boolean, "odd" => tests::is_odd,
        "even" => tests::is_even, "divisibleby" => tests::is_divisibleby,
        "number" => tests::is_number, "integer" => tests::is_integer,
        "float" => tests::is_float, "string" => tests::is_string,
        "sequence" => tests::is_sequence, "iterable" => tests::is_iterable,
        "mapping" => tests::is_mapping, "lower" => tests::is_lower, "upper" => tests::is_upper,
        "sameas" => tests::is_sameas, "eq" => tests::is_eq, "equalto" => tests::is_eq,
        "==" => tests::is_eq, "ne" => tests::is_ne, "!=" => tests::is_ne, "lt" => tests::is_lt,
        "lessthan" => tests::is_lt, "<" => tests::is_lt, "le" => tests::is_le,
        "<=" => tests::is_le, "gt" => tests::is_gt, "greaterthan" => tests::is_gt,
        ">" => tests::is_gt, "ge" => tests::is_ge, ">=" => tests::is_ge, "in" => tests::is_in,
        "true" => tests::is_true, "false" => tests::is_false, "filter" => tests::is_filter,
        "test" => tests::is_test,
    }
    env.add_test("callable", |value: Value| value.kind() == ValueKind::Plain);
}
