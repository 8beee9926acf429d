//! Counts the bytes that Rust code of this library holds, per thread, so that a rendering can be
//! stopped between two steps when it holds too much.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Constant initialiser and no destructor: reading it never allocates, so the allocator may.
    static HELD_BYTES: Cell<isize> = const { Cell::new(0) };
}

/// Bytes allocated less bytes freed by this thread. Negative when a thread frees another's memory.
pub fn held_bytes() -> isize {
    HELD_BYTES.with(Cell::get)
}

fn add(bytes: isize) {
    // Only fails while a thread is being torn down, when nobody counts any more.
    let _ = HELD_BYTES.try_with(|held| held.set(held.get().wrapping_add(bytes)));
}

struct Counting;

// SAFETY: every call is passed on to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        System.alloc(layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        System.alloc_zeroed(layout)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        System.dealloc(pointer, layout)
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        add(new_size as isize - layout.size() as isize);
        System.realloc(pointer, layout, new_size)
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
