//! One operation by itself, so that tests can hold our kernels and those of
//! llama.cpp against exact arithmetic.

#![allow(non_camel_case_types)] // types are named as in the header

use crate::llama::Kernels;
use crate::util::guarded;
use llama_cpp_sys_2 as sys;

/// The shape of one attention, as llama.cpp lays it out: queries
/// `[heads][rows][size]`, keys and values `[key_heads][keys][size]`, mask
/// `[rows][keys]`, result `[rows][heads][size]`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ag_attention_shape {
    pub rows: i32,
    pub heads: i32,
    pub key_heads: i32,
    pub keys: i32,
    pub size: i32,
    pub threads: i32,
    /// 1: with our kernel, 0: with llama.cpp's.
    pub own_kernels: i32,
    pub scale: f32,
}

/// Computes one attention; 0 where it went well. Keys, values and mask are
/// rounded to half floats.
///
/// # Safety
/// The arrays have the sizes that `shape` says.
#[no_mangle]
pub unsafe extern "C" fn ag_attention_check(
    shape: *const ag_attention_shape,
    q: *const f32,
    k: *const f32,
    v: *const f32,
    mask: *const f32,
    out: *mut f32,
) -> i32 {
    let done = guarded(|| {
        crate::llama::init();
        let s = *shape;
        let n = |of: &[i32]| of.iter().map(|x| *x as usize).product::<usize>();
        let (queries, cells, seen) = (
            n(&[s.heads, s.rows, s.size]),
            n(&[s.key_heads, s.keys, s.size]),
            n(&[s.rows, s.keys]),
        );
        let bytes = 8 * queries
            + 4 * cells
            + 2 * seen
            + 64 * n(&[s.threads, s.keys, 8])
            + 4 * 8 * queries
            + (64 << 20);
        let ctx = sys::ggml_init(sys::ggml_init_params {
            mem_size: bytes,
            mem_buffer: std::ptr::null_mut(),
            no_alloc: false,
        });
        if ctx.is_null() {
            return Err("no memory".to_string());
        }
        let tensor = |kind, a: i32, b: i32, c: i32| {
            sys::ggml_new_tensor_3d(ctx, kind, a as i64, b as i64, c as i64)
        };
        let tq = tensor(sys::GGML_TYPE_F32, s.size, s.rows, s.heads);
        let tk = tensor(sys::GGML_TYPE_F16, s.size, s.keys, s.key_heads);
        let tv = tensor(sys::GGML_TYPE_F16, s.size, s.keys, s.key_heads);
        let tm = tensor(sys::GGML_TYPE_F16, s.keys, s.rows, 1);
        std::ptr::copy_nonoverlapping(q, (*tq).data as *mut f32, queries);
        sys::ggml_fp32_to_fp16_row(k, (*tk).data as *mut sys::ggml_fp16_t, cells as i64);
        sys::ggml_fp32_to_fp16_row(v, (*tv).data as *mut sys::ggml_fp16_t, cells as i64);
        sys::ggml_fp32_to_fp16_row(mask, (*tm).data as *mut sys::ggml_fp16_t, seen as i64);
        let result = sys::ggml_flash_attn_ext(ctx, tq, tk, tv, tm, s.scale, 0.0, 0.0);
        let graph = sys::ggml_new_graph(ctx);
        sys::ggml_build_forward_expand(graph, result);
        let status = {
            let _kernels = Kernels::enter(s.own_kernels != 0);
            sys::ggml_graph_compute_with_ctx(ctx, graph, s.threads)
        };
        std::ptr::copy_nonoverlapping((*result).data as *const f32, out, queries);
        sys::ggml_free(ctx);
        Ok(status as i32)
    });
    done.unwrap_or(-100)
}
