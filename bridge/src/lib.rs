//! The C entry points of include/cicada_bridge.h. Each one checks its pointers, catches every
//! unwind, and hands out memory that only this library frees.

mod account;
mod clock;
mod environment;
mod instrument;
mod json;
mod meter;
mod methods;
mod template;
mod values;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;
use std::time::Duration;

use template::{Failure, Limits, Status, Template};

/// Owned text; mirrors CicadaBridgeText.
#[repr(C)]
pub struct Text {
    data: *mut u8,
    size: usize,
}

/// Mirrors CicadaRenderLimits.
#[repr(C)]
pub struct RenderLimits {
    max_output_bytes: u64,
    max_memory_bytes: u64,
    max_time_ms: u64,
}

fn into_text(text: String) -> Text {
    let bytes: Box<[u8]> = text.into_bytes().into_boxed_slice();
    let size = bytes.len();
    Text {
        data: Box::into_raw(bytes).cast::<u8>(),
        size,
    }
}

/// # Safety
/// `data` points to `size` readable bytes, or `size` is 0.
unsafe fn bytes<'a>(data: *const u8, size: usize) -> &'a [u8] {
    if size == 0 {
        return &[];
    }
    std::slice::from_raw_parts(data, size)
}

/// Runs `work`; a panic becomes Status::Internal and prints nothing.
fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(Failure::new(
            Status::Internal,
            format!("the template engine failed: {what}"),
        ))
    })
}

/// # Safety
/// As cicada_bridge.h says.
#[no_mangle]
pub unsafe extern "C" fn cicada_template_compile(
    source: *const u8,
    source_size: usize,
    out: *mut *mut Template,
    error: *mut Text,
) -> Status {
    match guarded(|| Template::compile(bytes(source, source_size)).map(Box::new)) {
        Ok(template) => {
            *out = Box::into_raw(template);
            Status::Ok
        }
        Err(failure) => {
            *error = into_text(failure.message);
            failure.status
        }
    }
}

/// # Safety
/// As cicada_bridge.h says.
#[no_mangle]
pub unsafe extern "C" fn cicada_template_render(
    template: *const Template,
    variables: *const u8,
    variables_size: usize,
    limits: *const RenderLimits,
    now_unix_s: i64,
    out: *mut Text,
) -> Status {
    let result = guarded(|| {
        let limits = Limits {
            max_output_bytes: usize::try_from((*limits).max_output_bytes).unwrap_or(usize::MAX),
            max_memory_bytes: usize::try_from((*limits).max_memory_bytes).unwrap_or(usize::MAX),
            max_time: Duration::from_millis((*limits).max_time_ms),
        };
        (*template).render(bytes(variables, variables_size), &limits, now_unix_s)
    });
    match result {
        Ok(text) => {
            *out = into_text(text);
            Status::Ok
        }
        Err(failure) => {
            *out = into_text(failure.message);
            failure.status
        }
    }
}

/// # Safety
/// As cicada_bridge.h says.
#[no_mangle]
pub unsafe extern "C" fn cicada_template_free(template: *mut Template) {
    if !template.is_null() {
        let template = Box::from_raw(template);
        let _ = catch_unwind(AssertUnwindSafe(move || drop(template)));
    }
}

/// # Safety
/// As cicada_bridge.h says.
#[no_mangle]
pub unsafe extern "C" fn cicada_bridge_text_free(text: *mut Text) {
    if !text.is_null() && !(*text).data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
            (*text).data,
            (*text).size,
        )));
        (*text).data = std::ptr::null_mut();
        (*text).size = 0;
    }
}
