//! llguidance calls that pass its structs, wrapped so that our header holds
//! opaque pointers and plain numbers. Everything else is called by its own
//! `llg_*` name.

use std::ffi::{c_char, c_void, CString};

use llguidance::ffi::{
    llg_clone_matcher, llg_new_matcher, llg_new_tokenizer_v2, llg_validate_grammar,
    LlgConstraintInit, LlgMatcher, LlgTokenizeFn, LlgTokenizer, LlgTokenizerInitV2,
};

use crate::util::{guarded, write_message};

/// Bounds on what a grammar may cost; 0 keeps llguidance's default.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct AgLlgLimits {
    pub initial_lexer_fuel: u64,
    pub step_lexer_fuel: u64,
    pub step_max_items: u64,
    pub max_items_in_row: u64,
    pub max_lexer_states: u64,
    pub max_grammar_size: u64,
}

/// The size of `AgLlgLimits`, so that the other side can compare.
#[no_mangle]
pub extern "C" fn ag_llg_abi() -> usize {
    std::mem::size_of::<AgLlgLimits>()
}

/// Tokenizes into one token per byte, the token's number being the byte. Its
/// type is that of llguidance's callback.
///
/// # Safety
/// `bytes` points to `bytes_len` bytes, `out` to `out_len` tokens.
#[no_mangle]
pub unsafe extern "C" fn ag_llg_tokenize_single_bytes(
    _user_data: *const c_void,
    bytes: *const u8,
    bytes_len: usize,
    out: *mut u32,
    out_len: usize,
) -> usize {
    for i in 0..bytes_len.min(out_len) {
        *out.add(i) = u32::from(*bytes.add(i));
    }
    bytes_len
}

/// Makes a tokenizer with any number of end tokens, or returns null with the
/// reason in `message`. With `greedy` the callback is not used.
///
/// # Safety
/// `token_lens` points to `n_tokens` lengths, `token_bytes` to their sum of
/// bytes, `eos` to `n_eos` ids; `tokenize_data` outlives the tokenizer.
#[no_mangle]
pub unsafe extern "C" fn ag_llg_tokenizer_new(
    n_tokens: u32,
    token_lens: *const u32,
    token_bytes: *const u8,
    eos: *const u32,
    n_eos: u32,
    tokenize: LlgTokenizeFn,
    tokenize_data: *const c_void,
    greedy: bool,
    message: *mut c_char,
    message_len: usize,
) -> *mut LlgTokenizer {
    let made = guarded(|| {
        if n_eos == 0 {
            return Err("a vocabulary needs at least one end token".into());
        }
        let mut init: LlgTokenizerInitV2 = std::mem::zeroed();
        init.struct_size = std::mem::size_of::<LlgTokenizerInitV2>();
        init.vocab_size = n_tokens;
        init.tok_eos = *eos;
        init.token_lens = token_lens;
        init.token_bytes = token_bytes;
        init.tokenize_fn = if greedy { None } else { tokenize };
        init.tokenize_user_data = tokenize_data;
        init.use_approximate_greedy_tokenize_fn = greedy;
        if n_eos > 1 {
            init.tok_eos_extra = eos.add(1);
            init.tok_eos_extra_count = n_eos - 1;
        }
        Ok(llg_new_tokenizer_v2(&init, message, message_len))
    });
    made.unwrap_or_else(|e| {
        write_message(&e, message, message_len);
        std::ptr::null_mut()
    })
}

unsafe fn init(tokenizer: *const LlgTokenizer, limits: &AgLlgLimits) -> LlgConstraintInit {
    let mut init: LlgConstraintInit = std::mem::zeroed();
    llguidance::ffi::llg_constraint_init_set_defaults(&mut init, tokenizer);
    init.log_buffer_level = 0;
    init.log_stderr_level = 0;
    let l = &mut init.limits;
    l.verbose_errors = false;
    let set = |v: &mut usize, n: u64| {
        if n > 0 {
            *v = n as usize
        }
    };
    set(&mut l.step_max_items, limits.step_max_items);
    set(&mut l.max_items_in_row, limits.max_items_in_row);
    set(&mut l.max_lexer_states, limits.max_lexer_states);
    set(&mut l.max_grammar_size, limits.max_grammar_size);
    if limits.initial_lexer_fuel > 0 {
        l.initial_lexer_fuel = limits.initial_lexer_fuel;
    }
    if limits.step_lexer_fuel > 0 {
        l.step_lexer_fuel = limits.step_lexer_fuel;
    }
    init
}

unsafe fn text(bytes: *const u8, len: usize) -> Result<CString, String> {
    let bytes = if len == 0 {
        &[][..]
    } else {
        std::slice::from_raw_parts(bytes, len)
    };
    CString::new(bytes).map_err(|e| format!("a NUL byte at offset {}", e.nul_position()))
}

/// Makes a matcher. Null only when the call itself could not be made, with the
/// reason in `message`; a grammar that does not compile is a matcher whose
/// `llg_matcher_get_error` says why.
///
/// # Safety
/// `kind` is NUL-terminated, `data` points to `data_len` bytes, `tokenizer`
/// outlives the matcher.
#[no_mangle]
pub unsafe extern "C" fn ag_llg_matcher_new(
    tokenizer: *const LlgTokenizer,
    limits: *const AgLlgLimits,
    kind: *const c_char,
    data: *const u8,
    data_len: usize,
    message: *mut c_char,
    message_len: usize,
) -> *mut LlgMatcher {
    let made = guarded(|| {
        let data = text(data, data_len)?;
        Ok(llg_new_matcher(
            &init(tokenizer, &*limits),
            kind,
            data.as_ptr(),
        ))
    });
    made.unwrap_or_else(|e| {
        write_message(&e, message, message_len);
        std::ptr::null_mut()
    })
}

/// Copies a matcher with its lexer's caches, so that the copies share no lock.
/// Null when that panicked, with the reason in `message`.
///
/// # Safety
/// `matcher` is a live matcher nobody else uses during the call.
#[no_mangle]
pub unsafe extern "C" fn ag_llg_matcher_clone(
    matcher: *const LlgMatcher,
    message: *mut c_char,
    message_len: usize,
) -> *mut LlgMatcher {
    guarded(|| Ok(llg_clone_matcher(&*matcher))).unwrap_or_else(|e| {
        write_message(&e, message, message_len);
        std::ptr::null_mut()
    })
}

/// Checks a grammar: 0 good, 1 good with a warning, -1 bad; the text is in
/// `message`.
///
/// # Safety
/// As for `ag_llg_matcher_new`.
#[no_mangle]
pub unsafe extern "C" fn ag_llg_validate_grammar(
    tokenizer: *const LlgTokenizer,
    limits: *const AgLlgLimits,
    kind: *const c_char,
    data: *const u8,
    data_len: usize,
    message: *mut c_char,
    message_len: usize,
) -> i32 {
    guarded(|| {
        let data = text(data, data_len)?;
        Ok(llg_validate_grammar(
            &init(tokenizer, &*limits),
            kind,
            data.as_ptr(),
            message,
            message_len,
        ))
    })
    .unwrap_or_else(|e| {
        write_message(&e, message, message_len);
        -1
    })
}
