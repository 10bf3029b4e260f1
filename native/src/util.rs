//! What the modules share: strings across the border, and no panic through it.

use std::ffi::c_char;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Runs `f`; a panic becomes an error text.
pub fn guarded<T>(f: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(r) => r,
        Err(p) => Err(p
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| p.downcast_ref::<&str>().map(|s| s.to_string()))
            .unwrap_or_else(|| "panic in the native library".into())),
    }
}

/// Copies `text` into `buf` (at most `len` bytes, always NUL-terminated, cut
/// at a character).
///
/// # Safety
/// `buf` points to `len` writable bytes, or is null.
pub unsafe fn write_message(text: &str, buf: *mut c_char, len: usize) {
    if buf.is_null() || len == 0 {
        return;
    }
    let mut n = text.len().min(len - 1);
    while !text.is_char_boundary(n) {
        n -= 1;
    }
    std::ptr::copy_nonoverlapping(text.as_ptr(), buf as *mut u8, n);
    *buf.add(n) = 0;
}
