//! The budget of one rendering: memory held, processor time, longest string, most values.
//! Everything that can grow asks here first. State is per thread and lives for one rendering.

use std::cell::Cell;
use std::fmt;
use std::time::{Duration, Instant};

use minijinja::{Error, ErrorKind};

use crate::account;
use crate::clock::thread_time;

/// Nesting of lists and mappings; bounds the native stack of printing, comparing and freeing them.
pub const MAX_DEPTH: usize = 128;
/// Values in one list or mapping, counted through everything nested in it, as often as it is nested:
/// what printing, comparing and sorting have to walk.
pub const MAX_VALUES: usize = 200_000;
/// Text in one list or mapping, counted in the same way.
pub const MAX_CONTAINED_TEXT_BYTES: usize = 32 << 20;

#[derive(Clone, Copy)]
struct Budget {
    memory_ceiling: isize,
    last_thread_time: Duration,
    next_look: Instant, // before it, the thread cannot have used up its time
    max_text_bytes: usize,
    now_unix_s: i64,
}

thread_local! {
    static BUDGET: Cell<Option<Budget>> = const { Cell::new(None) };
}

/// Marks an error as "a limit was exceeded".
#[derive(Debug)]
pub struct LimitExceeded;

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("limit exceeded")
    }
}

impl std::error::Error for LimitExceeded {}

pub fn limit_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into()).with_source(LimitExceeded)
}

/// Sets the budget of this thread until it is dropped.
pub struct Metered;

impl Metered {
    pub fn start(
        max_memory_bytes: usize,
        max_time: Duration,
        max_text_bytes: usize,
        now_unix_s: i64,
    ) -> Metered {
        let headroom = isize::try_from(max_memory_bytes).unwrap_or(isize::MAX);
        BUDGET.with(|b| {
            b.set(Some(Budget {
                memory_ceiling: account::held_bytes().saturating_add(headroom),
                last_thread_time: thread_time().saturating_add(max_time),
                next_look: Instant::now() + max_time,
                max_text_bytes,
                now_unix_s,
            }))
        });
        Metered
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        BUDGET.with(|b| b.set(None));
    }
}

/// Fails when the rendering holds too much memory or has used too much processor time (not time on
/// the wall: a busy machine changes nothing).
pub fn check() -> Result<(), Error> {
    let Some(mut budget) = BUDGET.with(Cell::get) else {
        return Ok(());
    };
    if account::held_bytes() > budget.memory_ceiling {
        return Err(limit_error("the template uses too much memory"));
    }
    if Instant::now() < budget.next_look {
        return Ok(());
    }
    let left = budget.last_thread_time.saturating_sub(thread_time());
    if left.is_zero() {
        return Err(limit_error("the template takes too long"));
    }
    budget.next_look = Instant::now() + left;
    BUDGET.with(|b| b.set(Some(budget)));
    Ok(())
}

/// The longest string that a template may hold, which is also the longest output.
pub fn max_text_bytes() -> usize {
    BUDGET.with(Cell::get).map_or(0, |b| b.max_text_bytes)
}

/// The caller's clock, for strftime_now.
pub fn now_unix_s() -> i64 {
    BUDGET.with(Cell::get).map_or(0, |b| b.now_unix_s)
}

pub fn text_too_long() -> Error {
    limit_error(format!("a text is longer than {} bytes", max_text_bytes()))
}

/// Fails when a string of that many bytes must not be made; `None` stands for an overflow.
pub fn check_text_bytes(bytes: Option<usize>) -> Result<(), Error> {
    match bytes {
        Some(bytes) if bytes <= max_text_bytes() => Ok(()),
        _ => Err(text_too_long()),
    }
}

pub fn check_value_count(count: usize) -> Result<(), Error> {
    if count > MAX_VALUES {
        return Err(limit_error(format!(
            "a list or mapping has more than {MAX_VALUES} values"
        )));
    }
    Ok(())
}

pub fn check_contained_text(bytes: usize) -> Result<(), Error> {
    if bytes > MAX_CONTAINED_TEXT_BYTES {
        return Err(limit_error(format!(
            "a list or mapping has more than {MAX_CONTAINED_TEXT_BYTES} bytes of text"
        )));
    }
    Ok(())
}

/// A string that refuses to grow past max_text_bytes().
#[derive(Default)]
pub struct BoundedText {
    text: String,
}

impl BoundedText {
    pub fn push(&mut self, part: &str) -> Result<(), Error> {
        check_text_bytes(self.text.len().checked_add(part.len()))?;
        self.text.push_str(part);
        Ok(())
    }

    pub fn into_string(self) -> String {
        self.text
    }
}
