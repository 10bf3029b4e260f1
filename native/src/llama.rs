//! llama.cpp behind calls that pass no struct of its own by value: loading,
//! contexts, batches of many sequences, and the choice of a token over the
//! logits where they lie.

#![allow(non_camel_case_types)] // types are named as in the header

use llama_cpp_sys_2 as sys;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::{c_char, c_void, CStr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, Once, PoisonError};

use crate::util::{guarded, write_message};

// ---- what llama.cpp logs ----------------------------------------------

const LOG_LINES: usize = 200;

static LOG: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

thread_local! {
    /// Errors logged by the running call, for its own message.
    static ERRORS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" fn on_log(level: sys::ggml_log_level, text: *const c_char, _: *mut c_void) {
    if text.is_null() || level == sys::GGML_LOG_LEVEL_DEBUG {
        return;
    }
    let text = CStr::from_ptr(text).to_string_lossy();
    let line = text.trim_end();
    if line.is_empty() || line == "." {
        return;
    }
    if level == sys::GGML_LOG_LEVEL_ERROR {
        ERRORS.with(|e| {
            let mut e = e.borrow_mut();
            if e.len() < 8 {
                e.push(line.to_string());
            }
        });
    }
    if let Ok(mut log) = LOG.lock() {
        if log.len() == LOG_LINES {
            log.pop_front();
        }
        log.push_back(line.chars().take(1000).collect());
    }
}

extern "C" {
    // kernels/ says what each does.
    fn ag_attention_register();
    fn ag_attention_enable(on: i32);
    fn ag_few_rows(model: *mut sys::llama_model);
}

pub(crate) fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| unsafe {
        ag_attention_register();
        sys::llama_log_set(Some(on_log), std::ptr::null_mut());
        sys::llama_backend_init();
    });
}

/// The first error of the running call without llama.cpp's function prefix,
/// which is the cause; later ones only say that loading failed.
fn cause(fallback: &str) -> String {
    ERRORS.with(|e| {
        let mut e = e.borrow_mut();
        let first = e.first().cloned();
        e.clear();
        match first {
            Some(line) => match line.split_once(": ") {
                Some((head, rest)) if !head.contains(' ') => rest.to_string(),
                _ => line,
            },
            None => fallback.to_string(),
        }
    })
}

/// Copies the last lines that llama.cpp logged into `buf`.
///
/// # Safety
/// `buf` points to `len` writable bytes.
#[no_mangle]
pub unsafe extern "C" fn ag_log_tail(buf: *mut c_char, len: usize) {
    let text = match LOG.lock() {
        Ok(log) => log.iter().cloned().collect::<Vec<_>>().join("\n"),
        Err(_) => String::new(),
    };
    let mut from = text.len().saturating_sub(len.saturating_sub(1));
    while !text.is_char_boundary(from) {
        from += 1;
    }
    write_message(&text[from..], buf, len);
}

// ---- models -------------------------------------------------------------

#[repr(C)]
pub struct ag_model_params {
    pub n_gpu_layers: i32,
    /// 1: map the file, 0: read it.
    pub use_mmap: i32,
    /// 1: repack weights into layouts made for this CPU.
    pub use_extra_bufts: i32,
    pub vocab_only: i32,
    /// 1: our kernels for few rows, where they fit.
    pub own_kernels: i32,
}

/// Loads a model; null and a message in `err` on failure.
///
/// # Safety
/// `path` is a C string, `params` valid, `err` has `err_len` writable bytes.
#[no_mangle]
pub unsafe extern "C" fn ag_model_load(
    path: *const c_char,
    params: *const ag_model_params,
    err: *mut c_char,
    err_len: usize,
) -> *mut sys::llama_model {
    let loaded = guarded(|| {
        init();
        ERRORS.with(|e| e.borrow_mut().clear());
        let want = &*params;
        let mut p = sys::llama_model_default_params();
        p.n_gpu_layers = want.n_gpu_layers;
        p.load_mode = if want.use_mmap != 0 {
            sys::LLAMA_LOAD_MODE_MMAP
        } else {
            sys::LLAMA_LOAD_MODE_NONE
        };
        p.use_extra_bufts = want.use_extra_bufts != 0;
        p.vocab_only = want.vocab_only != 0;
        let m = sys::llama_model_load_from_file(path, p);
        if m.is_null() {
            return Err(cause("llama.cpp cannot load it and gives no reason"));
        }
        if want.own_kernels != 0 && want.vocab_only == 0 {
            ag_few_rows(m);
        }
        Ok(m)
    });
    match loaded {
        Ok(m) => m,
        Err(text) => {
            write_message(&text, err, err_len);
            std::ptr::null_mut()
        }
    }
}

/// Kinds of token in `ag_vocab_pieces`, a set of bits.
const KIND_SPECIAL: u8 = 1;
const KIND_END: u8 = 2;
const KIND_UNUSED: u8 = 4;

/// Writes every token's bytes one after the other into `buf`, where each ends
/// into `ends[i]` and its kind into `kinds[i]`. Returns the bytes needed; if
/// that is more than `cap`, `buf` is not complete and the call is repeated.
///
/// # Safety
/// `vocab` is live; `ends` and `kinds` have room for every token.
#[no_mangle]
pub unsafe extern "C" fn ag_vocab_pieces(
    vocab: *const sys::llama_vocab,
    buf: *mut u8,
    cap: usize,
    ends: *mut u32,
    kinds: *mut u8,
) -> usize {
    let n = sys::llama_vocab_n_tokens(vocab);
    let mut at = 0usize;
    let mut small = [0 as c_char; 512];
    for id in 0..n {
        let attr = sys::llama_vocab_get_attr(vocab, id);
        let mut kind = 0u8;
        if attr & (sys::LLAMA_TOKEN_ATTR_CONTROL | sys::LLAMA_TOKEN_ATTR_UNKNOWN) != 0 {
            kind |= KIND_SPECIAL;
        }
        if attr & sys::LLAMA_TOKEN_ATTR_UNUSED != 0 {
            kind |= KIND_UNUSED;
        }
        if sys::llama_vocab_is_eog(vocab, id) {
            kind |= KIND_END | KIND_SPECIAL;
        }
        let mut put = |bytes: &[u8]| {
            if at + bytes.len() <= cap {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), buf.add(at), bytes.len());
            }
            at += bytes.len();
        };
        if kind & KIND_SPECIAL != 0 {
            let text = sys::llama_vocab_get_text(vocab, id);
            if !text.is_null() {
                put(CStr::from_ptr(text).to_bytes());
            }
        } else {
            let len = small.len() as i32;
            let got = sys::llama_token_to_piece(vocab, id, small.as_mut_ptr(), len, 0, false);
            if got >= 0 {
                put(std::slice::from_raw_parts(
                    small.as_ptr() as *const u8,
                    got as usize,
                ));
            } else {
                let mut big = vec![0 as c_char; (-got) as usize];
                let got = sys::llama_token_to_piece(vocab, id, big.as_mut_ptr(), -got, 0, false);
                if got > 0 {
                    put(std::slice::from_raw_parts(
                        big.as_ptr() as *const u8,
                        got as usize,
                    ));
                }
            }
        }
        *ends.add(id as usize) = at as u32;
        *kinds.add(id as usize) = kind;
    }
    at
}

// ---- tokenizer for llguidance --------------------------------------------

/// Tokenizes text that stands in the middle of an answer. A SentencePiece
/// vocabulary puts a space before whatever it is given; such text goes in
/// behind a newline, whose tokens are taken off again.
pub struct ag_tokenizer {
    vocab: *const sys::llama_vocab,
    /// Tokens of the newline put in front; none when no space is added.
    lead: Vec<i32>,
    known: Mutex<Known>,
}

/// Texts and their tokens. Grammars force the same texts, such as the names of
/// members, in every answer.
#[derive(Default)]
struct Known {
    tokens: HashMap<Vec<u8>, Vec<i32>>,
    bytes: usize,
}

/// Bounds of what is kept.
const KNOWN_TEXT: usize = 256;
const KNOWN_BYTES: usize = 1 << 20;

impl Known {
    fn keep(&mut self, text: &[u8], tokens: &[i32]) {
        if text.len() > KNOWN_TEXT {
            return;
        }
        let bytes = text.len() + 4 * tokens.len() + 64;
        if self.bytes + bytes > KNOWN_BYTES {
            *self = Known::default();
        }
        self.bytes += bytes;
        self.tokens.insert(text.to_vec(), tokens.to_vec());
    }
}

unsafe fn tokenize(vocab: *const sys::llama_vocab, text: &[u8]) -> Vec<i32> {
    let mut out = vec![0i32; text.len() + 8];
    let ptr = text.as_ptr() as *const c_char;
    let mut n = sys::llama_tokenize(
        vocab,
        ptr,
        text.len() as i32,
        out.as_mut_ptr(),
        out.len() as i32,
        false,
        false,
    );
    if n < 0 && n != i32::MIN {
        out.resize((-n) as usize, 0);
        n = sys::llama_tokenize(
            vocab,
            ptr,
            text.len() as i32,
            out.as_mut_ptr(),
            out.len() as i32,
            false,
            false,
        );
    }
    out.truncate(n.max(0) as usize);
    out
}

unsafe fn piece(vocab: *const sys::llama_vocab, token: i32) -> Vec<u8> {
    let mut buf = [0 as c_char; 256];
    let n = sys::llama_token_to_piece(vocab, token, buf.as_mut_ptr(), buf.len() as i32, 0, false);
    buf[..n.max(0) as usize].iter().map(|&c| c as u8).collect()
}

/// # Safety
/// `vocab` outlives the tokenizer.
#[no_mangle]
pub unsafe extern "C" fn ag_tokenizer_new(vocab: *const sys::llama_vocab) -> *mut ag_tokenizer {
    let made = guarded(|| {
        let adds_space = tokenize(vocab, b"a")
            .first()
            .is_some_and(|&t| piece(vocab, t).first() == Some(&b' '));
        let lead = if adds_space {
            tokenize(vocab, b"\n")
        } else {
            Vec::new()
        };
        Ok(Box::into_raw(Box::new(ag_tokenizer {
            vocab,
            lead,
            known: Mutex::default(),
        })))
    });
    made.unwrap_or(std::ptr::null_mut())
}

/// # Safety
/// `t` came from `ag_tokenizer_new` and is not used after.
#[no_mangle]
pub unsafe extern "C" fn ag_tokenizer_free(t: *mut ag_tokenizer) {
    if !t.is_null() {
        drop(Box::from_raw(t));
    }
}

/// The tokenize function that llguidance calls, from any thread: writes at
/// most `out_len` tokens and returns how many there are.
///
/// # Safety
/// `user` is a live `ag_tokenizer`; the buffers have the sizes given.
#[no_mangle]
pub unsafe extern "C" fn ag_tokenize(
    user: *const c_void,
    bytes: *const u8,
    len: usize,
    out: *mut u32,
    out_len: usize,
) -> usize {
    let done = guarded(|| {
        let t = &*(user as *const ag_tokenizer);
        let text = if len == 0 {
            &[][..]
        } else {
            std::slice::from_raw_parts(bytes, len)
        };
        let write = |tokens: &[i32]| {
            let n = tokens.len().min(out_len);
            for (i, &tok) in tokens[..n].iter().enumerate() {
                *out.add(i) = tok as u32;
            }
            tokens.len()
        };
        let known = || t.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tokens) = known().tokens.get(text) {
            return Ok(write(tokens));
        }
        let mut tokens;
        if t.lead.is_empty() || text.is_empty() {
            tokens = tokenize(t.vocab, text);
        } else {
            let mut with = Vec::with_capacity(len + 1);
            with.push(b'\n');
            with.extend_from_slice(text);
            tokens = tokenize(t.vocab, &with);
            if tokens.starts_with(&t.lead) {
                tokens.drain(..t.lead.len());
            } else {
                // The newline merged with the text: no tokens, so that the
                // caller goes on without this help.
                tokens.clear();
            }
        }
        known().keep(text, &tokens);
        Ok(write(&tokens))
    });
    done.unwrap_or(0)
}

// ---- contexts -------------------------------------------------------------

#[repr(C)]
pub struct ag_context_params {
    pub n_ctx: u32,
    pub n_batch: u32,
    pub n_ubatch: u32,
    pub n_seq_max: u32,
    pub n_outputs_max: u32,
    pub n_threads: i32,
    pub n_threads_batch: i32,
    /// -1 as llama.cpp likes, 0 off, 1 on.
    pub flash_attn: i32,
    pub kv_unified: i32,
    /// How long the threads look for the next step before they sleep, 0 to
    /// 100 as ggml counts; -1: threads are made anew for every step.
    pub poll: i32,
    /// 1: our kernel for attention, where it fits.
    pub own_kernels: i32,
}

/// How many graphs are being computed, and whether with our kernels.
static KERNELS: Mutex<(usize, bool)> = Mutex::new((0, true));
static KERNELS_FREE: Condvar = Condvar::new();

/// Held while a graph is computed: its threads, and all graphs beside it, have
/// the same kernels. Contexts with others wait.
pub(crate) struct Kernels;

impl Kernels {
    pub(crate) fn enter(own: bool) -> Kernels {
        let mut k = KERNELS.lock().unwrap_or_else(|e| e.into_inner());
        while k.0 > 0 && k.1 != own {
            k = KERNELS_FREE.wait(k).unwrap_or_else(|e| e.into_inner());
        }
        *k = (k.0 + 1, own);
        unsafe { ag_attention_enable(own as i32) };
        Kernels
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        let mut k = KERNELS.lock().unwrap_or_else(|e| e.into_inner());
        k.0 -= 1;
        if k.0 == 0 {
            KERNELS_FREE.notify_all();
        }
    }
}

pub struct ag_context {
    ctx: *mut sys::llama_context,
    pool: *mut sys::ggml_threadpool,
    abort: AtomicBool,
    own_kernels: bool,
    n_vocab: usize,
    n_seq_id: Vec<i32>,
    seq_id: Vec<*mut i32>,
    candidates: Vec<(f32, u32)>,
}

unsafe extern "C" fn aborted(data: *mut c_void) -> bool {
    (*(data as *const AtomicBool)).load(Ordering::Relaxed)
}

/// # Safety
/// `model` is live and outlives the context.
#[no_mangle]
pub unsafe extern "C" fn ag_context_new(
    model: *mut sys::llama_model,
    params: *const ag_context_params,
    err: *mut c_char,
    err_len: usize,
) -> *mut ag_context {
    let made = guarded(|| {
        ERRORS.with(|e| e.borrow_mut().clear());
        let want = &*params;
        let mut p = sys::llama_context_default_params();
        p.n_ctx = want.n_ctx;
        p.n_batch = want.n_batch;
        p.n_ubatch = want.n_ubatch;
        p.n_seq_max = want.n_seq_max;
        p.n_outputs_max = want.n_outputs_max;
        p.n_threads = want.n_threads;
        p.n_threads_batch = want.n_threads_batch;
        p.flash_attn_type = want.flash_attn;
        p.kv_unified = want.kv_unified != 0;
        p.no_perf = true;
        let ctx = sys::llama_init_from_model(model, p);
        if ctx.is_null() {
            return Err(cause("llama.cpp cannot make a context and gives no reason"));
        }
        let mut pool = std::ptr::null_mut();
        if want.poll >= 0 && want.n_threads > 1 {
            let mut tp = sys::ggml_threadpool_params_default(want.n_threads);
            tp.poll = want.poll as u32;
            pool = sys::ggml_threadpool_new(&mut tp);
            if !pool.is_null() {
                sys::llama_attach_threadpool(ctx, pool, pool);
            }
        }
        let n_vocab = sys::llama_vocab_n_tokens(sys::llama_model_get_vocab(model)) as usize;
        let made = Box::into_raw(Box::new(ag_context {
            ctx,
            pool,
            abort: AtomicBool::new(false),
            own_kernels: want.own_kernels != 0,
            n_vocab,
            n_seq_id: vec![1; want.n_batch as usize],
            seq_id: vec![std::ptr::null_mut(); want.n_batch as usize],
            candidates: Vec::new(),
        }));
        let flag = &(*made).abort as *const AtomicBool as *mut c_void;
        sys::llama_set_abort_callback(ctx, Some(aborted), flag);
        Ok(made)
    });
    match made {
        Ok(c) => c,
        Err(text) => {
            write_message(&text, err, err_len);
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// `c` came from `ag_context_new` and is not used after.
#[no_mangle]
pub unsafe extern "C" fn ag_context_free(c: *mut ag_context) {
    if !c.is_null() {
        sys::llama_free((*c).ctx);
        if !(*c).pool.is_null() {
            sys::ggml_threadpool_free((*c).pool);
        }
        drop(Box::from_raw(c));
    }
}

/// The llama.cpp context inside.
///
/// # Safety
/// `c` is live.
#[no_mangle]
pub unsafe extern "C" fn ag_context_llama(c: *mut ag_context) -> *mut sys::llama_context {
    (*c).ctx
}

/// Makes a running `ag_decode` return 2 soon (on = 1), or lets the next one
/// run (on = 0). From any thread.
///
/// # Safety
/// `c` is live.
#[no_mangle]
pub unsafe extern "C" fn ag_context_abort(c: *mut ag_context, on: i32) {
    (*c).abort.store(on != 0, Ordering::Relaxed);
}

/// Decodes `n` tokens, each of one sequence. Returns what `llama_decode`
/// returns, or -100 on a panic; a message in `err` when negative.
///
/// # Safety
/// The arrays have `n` entries; `n` is at most `n_batch`.
#[no_mangle]
pub unsafe extern "C" fn ag_decode(
    c: *mut ag_context,
    n: i32,
    tokens: *mut i32,
    pos: *mut i32,
    seqs: *mut i32,
    logits: *mut i8,
    err: *mut c_char,
    err_len: usize,
) -> i32 {
    let done = guarded(|| {
        ERRORS.with(|e| e.borrow_mut().clear());
        let c = &mut *c;
        if n <= 0 || n as usize > c.seq_id.len() {
            return Err(format!("a batch of {n} tokens does not fit"));
        }
        for i in 0..n as usize {
            c.seq_id[i] = seqs.add(i);
        }
        let batch = sys::llama_batch {
            n_tokens: n,
            token: tokens,
            embd: std::ptr::null_mut(),
            pos,
            n_seq_id: c.n_seq_id.as_mut_ptr(),
            seq_id: c.seq_id.as_mut_ptr(),
            logits,
        };
        let _kernels = Kernels::enter(c.own_kernels);
        let rc = sys::llama_decode(c.ctx, batch);
        // The logits are read at once; a GPU backend may still be at work.
        sys::llama_synchronize(c.ctx);
        Ok(rc)
    });
    match done {
        Ok(rc) => {
            if rc < 0 {
                write_message(
                    &cause("llama_decode failed and gives no reason"),
                    err,
                    err_len,
                );
            }
            rc
        }
        Err(text) => {
            write_message(&text, err, err_len);
            -100
        }
    }
}

// ---- choosing a token ------------------------------------------------------

#[repr(C)]
pub struct ag_sampling {
    /// 0: the most likely token.
    pub temperature: f32,
    /// 1 or 0: off.
    pub top_p: f32,
    pub min_p: f32,
    pub top_k: i32,
    /// State of the random numbers; changed by each draw.
    pub rng: u64,
}

/// No allowed token at all.
const SAMPLE_NONE: i32 = -1;
/// Logits that are not numbers.
const SAMPLE_NAN: i32 = -2;
/// No logits at that place of the batch.
const SAMPLE_NO_LOGITS: i32 = -3;

/// Chooses the next token from the logits of batch entry `row`, over the
/// tokens whose bit is set in `mask` (null: all). Ties go to the lowest id.
/// Filters run in the order top_k, top_p, min_p, temperature.
///
/// # Safety
/// `c` has decoded a batch with logits at `row`; `mask` has `words` words.
#[no_mangle]
pub unsafe extern "C" fn ag_sample(
    c: *mut ag_context,
    row: i32,
    mask: *const u32,
    words: usize,
    sampling: *mut ag_sampling,
) -> i32 {
    let chosen = guarded(|| {
        let c = &mut *c;
        let logits = sys::llama_get_logits_ith(c.ctx, row);
        if logits.is_null() {
            return Ok(SAMPLE_NO_LOGITS);
        }
        let logits = std::slice::from_raw_parts(logits, c.n_vocab);
        let mask = if mask.is_null() {
            None
        } else {
            Some(std::slice::from_raw_parts(mask, words))
        };
        let s = &mut *sampling;
        if s.temperature <= 0.0 {
            Ok(greedy(logits, mask))
        } else {
            Ok(draw(logits, mask, s, &mut c.candidates))
        }
    });
    chosen.unwrap_or(SAMPLE_NO_LOGITS)
}

/// How much more likely `token` is than the best other allowed one, in
/// logits; for tests of how near a choice was.
///
/// # Safety
/// As for `ag_sample`; `token` is one of the vocabulary.
#[no_mangle]
pub unsafe extern "C" fn ag_margin(
    c: *mut ag_context,
    row: i32,
    mask: *const u32,
    words: usize,
    token: i32,
) -> f32 {
    let gap = guarded(|| {
        let c = &*c;
        let logits = sys::llama_get_logits_ith(c.ctx, row);
        if logits.is_null() || token as usize >= c.n_vocab {
            return Ok(f32::NAN);
        }
        let logits = std::slice::from_raw_parts(logits, c.n_vocab);
        let mask = if mask.is_null() {
            None
        } else {
            Some(std::slice::from_raw_parts(mask, words))
        };
        let other = logits
            .iter()
            .enumerate()
            .filter(|&(id, _)| {
                id != token as usize
                    && mask.is_none_or(|m| m.get(id / 32).is_some_and(|w| w >> (id % 32) & 1 == 1))
            })
            .map(|(_, &l)| l)
            .fold(f32::NEG_INFINITY, f32::max);
        Ok(logits[token as usize] - other)
    });
    gap.unwrap_or(f32::NAN)
}

/// Writes the natural logarithms of the model's own probabilities, at
/// temperature 1 and before any mask: of `token` into `own`, and the `top`
/// likeliest tokens with theirs into `ids` and `logprobs`, likeliest first,
/// ties by id. Returns how many those are, or -1 without logits at `row`.
///
/// # Safety
/// As for `ag_sample`; `ids` and `logprobs` have room for `top`, `own` for one.
#[no_mangle]
pub unsafe extern "C" fn ag_logprobs(
    c: *mut ag_context,
    row: i32,
    token: i32,
    top: i32,
    own: *mut f32,
    ids: *mut i32,
    logprobs: *mut f32,
) -> i32 {
    let done = guarded(|| {
        let c = &mut *c;
        let logits = sys::llama_get_logits_ith(c.ctx, row);
        if logits.is_null() || token < 0 || token as usize >= c.n_vocab {
            return Ok(-1);
        }
        let logits = std::slice::from_raw_parts(logits, c.n_vocab);
        let max = logits
            .iter()
            .fold(f32::NEG_INFINITY, |m, &l| if l > m { l } else { m });
        let sum: f64 = logits.iter().map(|&l| f64::from((l - max).exp())).sum();
        let whole = f64::from(max) + sum.ln();
        let logprob = |l: f32| (f64::from(l) - whole) as f32;
        *own = logprob(logits[token as usize]);
        let top = (top.max(0) as usize).min(c.n_vocab);
        if top == 0 {
            return Ok(0);
        }
        let cand = &mut c.candidates;
        cand.clear();
        cand.extend(logits.iter().enumerate().map(|(id, &l)| (l, id as u32)));
        let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        cand.select_nth_unstable_by(top - 1, order);
        cand[..top].sort_unstable_by(order);
        for (i, &(l, id)) in cand[..top].iter().enumerate() {
            *ids.add(i) = id as i32;
            *logprobs.add(i) = logprob(l);
        }
        Ok(top as i32)
    });
    done.unwrap_or(-1)
}

fn best_of(logits: &[f32], base: usize, best: &mut (f32, i32), seen: &mut bool) {
    *seen |= !logits.is_empty();
    // A first pass without branches finds whether this stretch matters, in
    // lanes, so that no comparison waits for the one before.
    let higher = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; 32];
    let parts = logits.chunks_exact(lanes.len());
    let rest = parts.remainder();
    for part in parts {
        for (lane, &l) in lanes.iter_mut().zip(part) {
            *lane = higher(*lane, l);
        }
    }
    let top = lanes
        .iter()
        .chain(rest)
        .fold(f32::NEG_INFINITY, |m, &l| higher(m, l));
    if top > best.0 {
        if let Some(i) = logits.iter().position(|&l| l == top) {
            *best = (top, (base + i) as i32);
        }
    }
}

fn greedy(logits: &[f32], mask: Option<&[u32]>) -> i32 {
    let mut best = (f32::NEG_INFINITY, SAMPLE_NONE);
    let mut seen = false;
    match mask {
        None => {
            for (i, part) in logits.chunks(1024).enumerate() {
                best_of(part, i * 1024, &mut best, &mut seen);
            }
        }
        Some(mask) => {
            for (w, &bits) in mask.iter().enumerate() {
                let base = w * 32;
                if bits == 0 {
                    continue;
                }
                if base >= logits.len() {
                    break;
                }
                if bits == u32::MAX && base + 32 <= logits.len() {
                    best_of(&logits[base..base + 32], base, &mut best, &mut seen);
                    continue;
                }
                let mut left = bits;
                while left != 0 {
                    let id = base + left.trailing_zeros() as usize;
                    left &= left - 1;
                    if id >= logits.len() {
                        break;
                    }
                    seen = true;
                    if logits[id] > best.0 {
                        best = (logits[id], id as i32);
                    }
                }
            }
        }
    }
    if best.1 < 0 && seen {
        return SAMPLE_NAN;
    }
    best.1
}

fn draw(
    logits: &[f32],
    mask: Option<&[u32]>,
    s: &mut ag_sampling,
    cand: &mut Vec<(f32, u32)>,
) -> i32 {
    cand.clear();
    let mut seen = false;
    for (id, &l) in logits.iter().enumerate() {
        let allowed = mask.is_none_or(|m| m.get(id / 32).is_some_and(|w| w >> (id % 32) & 1 == 1));
        if allowed {
            seen = true;
            if l.is_finite() {
                cand.push((l, id as u32));
            }
        }
    }
    if cand.is_empty() {
        return if seen { SAMPLE_NAN } else { SAMPLE_NONE };
    }
    let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if s.top_k > 0 && (s.top_k as usize) < cand.len() {
        cand.select_nth_unstable_by(s.top_k as usize - 1, order);
        cand.truncate(s.top_k as usize);
    }
    let top = cand.iter().map(|c| c.0).fold(f32::NEG_INFINITY, f32::max) as f64;
    if s.top_p > 0.0 && s.top_p < 1.0 {
        let total: f64 = cand.iter().map(|c| (c.0 as f64 - top).exp()).sum();
        let want = s.top_p as f64 * total;
        // Sort no more of the head than the nucleus needs.
        let (mut head, mut keep) = (256.min(cand.len()), cand.len());
        loop {
            if head < cand.len() {
                cand.select_nth_unstable_by(head - 1, order);
            }
            cand[..head].sort_unstable_by(order);
            let mut sum = 0.0;
            let at = cand[..head].iter().position(|c| {
                sum += (c.0 as f64 - top).exp();
                sum >= want
            });
            if let Some(i) = at {
                keep = i + 1;
                break;
            }
            if head == cand.len() {
                break;
            }
            head = (head * 8).min(cand.len());
        }
        cand.truncate(keep);
    }
    if s.min_p > 0.0 {
        let floor = top + (s.min_p as f64).ln();
        cand.retain(|c| c.0 as f64 >= floor);
    }
    // By id, so that the draw does not depend on how the filters left them.
    cand.sort_unstable_by_key(|c| c.1);
    let t = s.temperature as f64;
    let total: f64 = cand.iter().map(|c| ((c.0 as f64 - top) / t).exp()).sum();
    let mut left = uniform(&mut s.rng) * total;
    for c in cand.iter() {
        left -= ((c.0 as f64 - top) / t).exp();
        if left < 0.0 {
            return c.1 as i32;
        }
    }
    cand.last().map_or(SAMPLE_NONE, |c| c.1 as i32)
}

/// A number in [0, 1) from SplitMix64 (Steele, Lea, Flood 2014).
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    (z >> 11) as f64 / (1u64 << 53) as f64
}

/// Decodes `n` tokens one after the other, each the most likely after the one
/// before, from `token` at position `pos` of sequence 0: the loop that the
/// engine's own is compared with. Returns how many it did.
///
/// # Safety
/// `c` is live and its sequence 0 ends at `pos`.
#[no_mangle]
pub unsafe extern "C" fn ag_plain_loop(c: *mut ag_context, token: i32, pos: i32, n: i32) -> i32 {
    let done = guarded(|| {
        let ctx = (*c).ctx;
        let vocab_size = (*c).n_vocab;
        let mut token = token;
        for i in 0..n {
            let (mut t, mut p, mut one, mut seq, mut want) = (token, pos + i, 1, 0, 1i8);
            let mut seqs = &mut seq as *mut i32;
            let batch = sys::llama_batch {
                n_tokens: 1,
                token: &mut t,
                embd: std::ptr::null_mut(),
                pos: &mut p,
                n_seq_id: &mut one,
                seq_id: &mut seqs,
                logits: &mut want,
            };
            let _kernels = Kernels::enter((*c).own_kernels);
            if sys::llama_decode(ctx, batch) != 0 {
                return Ok(i);
            }
            let logits = std::slice::from_raw_parts(sys::llama_get_logits_ith(ctx, 0), vocab_size);
            token = greedy(logits, None);
        }
        Ok(n)
    });
    done.unwrap_or(0)
}

// ---- other layouts of the same weights --------------------------------------

/// Writes the model at `from` to `to` in another layout, one of llama.cpp's
/// file types. 0, or -1 with a message in `err`.
///
/// # Safety
/// The paths are C strings; `err` has `err_len` writable bytes.
#[no_mangle]
pub unsafe extern "C" fn ag_model_quantize(
    from: *const c_char,
    to: *const c_char,
    ftype: u32,
    threads: i32,
    err: *mut c_char,
    err_len: usize,
) -> i32 {
    let done = guarded(|| {
        init();
        ERRORS.with(|e| e.borrow_mut().clear());
        let mut p = sys::llama_model_quantize_default_params();
        p.ftype = ftype as _;
        p.nthread = threads;
        p.allow_requantize = true;
        if sys::llama_model_quantize(from, to, &p) != 0 {
            return Err(cause(
                "llama.cpp cannot write this layout and gives no reason",
            ));
        }
        Ok(0)
    });
    done.unwrap_or_else(|text| {
        write_message(&text, err, err_len);
        -1
    })
}

// ---- facts for the Go side's checks ---------------------------------------

/// Bytes of a row of `n` elements of tensor type `kind`; 0 when this build
/// does not know the type or `n` is no whole number of blocks.
#[no_mangle]
pub extern "C" fn ag_type_row_size(kind: u32, n: u64) -> u64 {
    if kind >= sys::GGML_TYPE_COUNT {
        return 0;
    }
    let (block, size) = unsafe {
        (
            sys::ggml_blck_size(kind) as u64,
            sys::ggml_type_size(kind) as u64,
        )
    };
    if block == 0 || n % block != 0 {
        return 0;
    }
    (n / block).saturating_mul(size)
}

/// Sizes of the structs above, compared with the header in a test.
#[no_mangle]
pub extern "C" fn ag_llama_struct_sizes(out: *mut usize, len: usize) {
    let sizes = [
        size_of::<ag_model_params>(),
        size_of::<ag_context_params>(),
        size_of::<ag_sampling>(),
    ];
    for (i, s) in sizes.iter().enumerate().take(len) {
        unsafe { *out.add(i) = *s };
    }
}
