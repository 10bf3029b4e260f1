// Matrix products with few rows, over weights that llama.cpp has laid out for
// AMX.
//
// A step of an answer multiplies every weight with one row, a step of several
// answers or of forced tokens with a few. llama.cpp has a vector kernel for one
// row; from two on it goes to the AMX tiles, which are made for sixteen and
// more: 4-bit weights are written out as bytes for each step, so that two rows
// cost nearly three times as much as one. Here the weights are read once,
// unpacked in registers and multiplied with every row; and they are asked for
// ahead, since one thread that waits for each line of memory in turn gets only
// a part of what the memory can deliver.
//
// The sums are those of both of llama.cpp's kernels, in the same order, so that
// the results are equal to the bit, whichever kernel a row meets.

#include "kernels.h"

#include "ggml-backend.h"
#include "llama.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

// Of llama-model.h, which would bring in all of llama.cpp.
const std::vector<std::pair<std::string, ggml_tensor *>> & llama_internal_get_tensor_map(const llama_model * model);

#if defined(AG_KERNELS) && defined(__AMX_INT8__) && defined(__AVX512VNNI__)

#include "quants.h"

#include <immintrin.h>

namespace {

constexpr int kRows      = 64; // above, the tiles are as fast
constexpr int kRowsBytes = 8;  // the same, for weights of 8 bits: the tiles need not unpack them
constexpr int kAtOnce    = 8;  // rows that the registers hold
constexpr int kApart     = 2;  // up to here each thread quantizes the input for itself
constexpr int kColumns   = 16; // of one tile of weights
constexpr int kDepth     = 32; // weights of one scale, in one column
constexpr int kLine      = 64; // bytes

// The tiles of each kind: 16 columns of 32 weights, four of a column together;
// 4-bit ones two groups in the halves of a byte. The scales follow, then what
// else the kind has for each column.

struct Q4_0 {
    using Block = block_q8_0; // of the input
    static constexpr ggml_type type = GGML_TYPE_Q4_0;
    static constexpr bool nibbles = true, minima = false;
    static constexpr int scales = kColumns * kDepth / 2, bytes = scales + kColumns * 2;
};

struct Q4_1 {
    using Block = block_q8_1;
    static constexpr ggml_type type = GGML_TYPE_Q4_1;
    static constexpr bool nibbles = true, minima = true;
    static constexpr int scales = kColumns * kDepth / 2, bytes = scales + kColumns * 4;
};

struct Q8_0 {
    using Block = block_q8_0;
    static constexpr ggml_type type = GGML_TYPE_Q8_0;
    static constexpr bool nibbles = false, minima = false;
    static constexpr int scales = kColumns * kDepth, bytes = scales + kColumns * 2 + kColumns * 4;
};

// The input as 8-bit numbers: the rows one after the other, each 32 numbers
// with a scale, and with what their sum adds.
struct Input {
    int       depth; // numbers of a row
    int       blocks;
    int32_t * q;     // [rows][depth / 4]
    float *   d;     // [rows][blocks]
    float *   s;     // [rows][blocks]: times the minimum; of Q4_0 an int32

    Input(void * memory, int rows, int depth) : depth(depth), blocks(depth / kDepth) {
        q = (int32_t *) memory;
        d = (float *) (q + size_t(rows) * depth / 4);
        s = d + size_t(rows) * blocks;
    }

    static size_t bytes(int rows, int depth) {
        const size_t n = size_t(rows) * (depth + depth / kDepth * 2 * sizeof(float));
        return (n + kLine - 1) / kLine * kLine;
    }
};

void quantize_block(const float * x, block_q8_0 & b) { quantize_row_q8_0(x, &b, kDepth); }
void quantize_block(const float * x, block_q8_1 & b) { quantize_row_q8_1(x, &b, kDepth); }

// One row, quantized as llama.cpp does it.
template <class W> void quantize(const float * x, const Input & in, int row) {
    int8_t * q = (int8_t *) in.q + size_t(row) * in.depth;
    for (int i = 0; i < in.blocks; ++i) {
        typename W::Block b;
        quantize_block(x + i * kDepth, b);
        const size_t at = size_t(row) * in.blocks + i;
        in.d[at] = _cvtsh_ss(b.d);
        if constexpr (W::minima) {
            in.s[at] = _cvtsh_ss(b.s);
        } else if constexpr (W::nibbles) {
            // The weights are 8 less than their four bits say.
            int32_t sum = 0;
            for (int k = 0; k < kDepth; ++k) {
                sum -= 8 * b.qs[k];
            }
            memcpy(in.s + at, &sum, sizeof(sum));
        } else {
            // The instruction wants one side without a sign; the tile knows
            // what the 128 too much come to.
            for (int k = 0; k < kDepth; ++k) {
                b.qs[k] ^= 0x80;
            }
        }
        memcpy(q + i * kDepth, b.qs, kDepth);
    }
}

// M rows of the input from row on, and COLS times 16 columns of the weights:
// enough sums in flight also where there are few rows. The weights that follow
// `ahead` bytes behind are asked for meanwhile.
template <class W, int M, int COLS>
void multiply(const Input & in, int row, const char * weights, size_t ahead, float * out, int stride) {
    const int       blocks = in.blocks, words = in.depth / 4;
    const __m512i   low = _mm512_set1_epi8(0xF);
    const int32_t * q = in.q + size_t(row) * words;
    const float *   d = in.d + size_t(row) * blocks;
    const float *   s = in.s + size_t(row) * blocks;

    __m512 acc[COLS][M];
    for (int c = 0; c < COLS; ++c) {
        for (int m = 0; m < M; ++m) {
            acc[c][m] = _mm512_setzero_ps();
        }
    }
    for (int i = 0; i < blocks; ++i) {
        __m512i sum[COLS][M];
        for (int c = 0; c < COLS; ++c) {
            const char * tile = weights + (size_t(c) * blocks + i) * W::bytes;
            for (int m = 0; m < M; ++m) {
                if constexpr (!W::nibbles) {
                    const char * surplus = tile + W::scales + kColumns * 2;
                    sum[c][m] = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_loadu_si512(surplus));
                } else if constexpr (!W::minima) {
                    sum[c][m] = _mm512_set1_epi32(((const int32_t *) s)[m * blocks + i]);
                } else {
                    sum[c][m] = _mm512_setzero_si512();
                }
            }
        }
#pragma GCC unroll 8
        for (int k = 0; k < W::scales / kLine; ++k) {
#pragma GCC unroll 4
            for (int c = 0; c < COLS; ++c) {
                const char *  here = weights + (size_t(c) * blocks + i) * W::bytes + k * kLine;
                const __m512i both = _mm512_loadu_si512(here);
                _mm_prefetch(here + ahead, _MM_HINT_T0);
                if constexpr (W::nibbles) {
                    const __m512i w0 = _mm512_and_si512(both, low);
                    const __m512i w1 = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
#pragma GCC unroll 8
                    for (int m = 0; m < M; ++m) {
                        const int32_t * a = q + m * words + i * (kDepth / 4) + k * 2;
                        sum[c][m] = _mm512_dpbusd_epi32(sum[c][m], w0, _mm512_set1_epi32(a[0]));
                        sum[c][m] = _mm512_dpbusd_epi32(sum[c][m], w1, _mm512_set1_epi32(a[1]));
                    }
                } else {
#pragma GCC unroll 8
                    for (int m = 0; m < M; ++m) {
                        const int32_t * a = q + m * words + i * (kDepth / 4) + k;
                        sum[c][m] = _mm512_dpbusd_epi32(sum[c][m], _mm512_set1_epi32(a[0]), both);
                    }
                }
            }
        }
#pragma GCC unroll 4
        for (int c = 0; c < COLS; ++c) {
            const char * scales = weights + (size_t(c) * blocks + i) * W::bytes + W::scales;
            const __m512 scale  = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) scales));
            _mm_prefetch(scales + ahead, _MM_HINT_T0);
#pragma GCC unroll 8
            for (int m = 0; m < M; ++m) {
                const __m512 both = _mm512_mul_ps(scale, _mm512_set1_ps(d[m * blocks + i]));
                acc[c][m] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[c][m]), both, acc[c][m]);
            }
            if constexpr (W::minima) {
                const __m512 minimum = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) scales + 1));
#pragma GCC unroll 8
                for (int m = 0; m < M; ++m) {
                    acc[c][m] = _mm512_fmadd_ps(minimum, _mm512_set1_ps(s[m * blocks + i]), acc[c][m]);
                }
            }
        }
    }
    for (int c = 0; c < COLS; ++c) {
        for (int m = 0; m < M; ++m) {
            _mm512_storeu_ps(out + size_t(m) * stride + c * kColumns, acc[c][m]);
        }
    }
}

using Multiply = void (*)(const Input &, int, const char *, size_t, float *, int);

// At most 16 sums and 16 results together, so that they stay in registers.
template <class W> Multiply pick(int rows, int columns) {
    static const Multiply one[] = { multiply<W, 1, 1>, multiply<W, 2, 1>, multiply<W, 3, 1>, multiply<W, 4, 1>,
                                    multiply<W, 5, 1>, multiply<W, 6, 1>, multiply<W, 7, 1>, multiply<W, 8, 1> };
    static const Multiply two[] = { multiply<W, 1, 2>, multiply<W, 2, 2>, multiply<W, 3, 2>, multiply<W, 4, 2> };
    static const Multiply four[] = { multiply<W, 1, 4>, multiply<W, 2, 4> };
    return columns == 4 ? four[rows - 1] : columns == 2 ? two[rows - 1] : one[rows - 1];
}

template <class W> void product(ggml_compute_params * params, ggml_tensor * op) {
    const ggml_tensor *w = op->src[0], *x = op->src[1];
    const int  rows = op->ne[1], depth = w->ne[0], stride = op->nb[1] / sizeof(float);
    const bool apart = rows <= kApart;
    const Input in((char *) params->wdata + (apart ? params->ith * Input::bytes(rows, depth) : 0), rows, depth);
    const size_t column = size_t(in.blocks) * W::bytes; // of 16 columns of weights

    auto [from, to] = share(params, op->ne[0] / kColumns);
    const char * weights = (const char *) w->data + from * column;
    for (int at = 0; from < to && at < int(column) && at < 16 * kLine; at += kLine) {
        _mm_prefetch(weights + at, _MM_HINT_T0);
    }
    auto [first, last] = apart ? std::pair<int, int>(0, rows) : share(params, rows);
    for (int m = first; m < last; ++m) {
        quantize<W>((const float *) ((const char *) x->data + m * x->nb[1]), in, m);
    }
    if (!apart) {
        ggml_barrier(params->threadpool);
    }
    for (int n = from; n < to;) {
        const int left = to - n;
        const int wide = rows <= 2 && left >= 4 ? 4 : rows <= 4 && left >= 2 ? 2 : 1;
        const size_t ahead = left > wide ? wide * column : 0;
        float *      out   = (float *) op->data + n * kColumns;
        for (int m = 0; m < rows; m += kAtOnce) {
            pick<W>(std::min(kAtOnce, rows - m), wide)(in, m, weights, ahead, out + size_t(m) * stride, stride);
        }
        weights += wide * column;
        n += wide;
    }
}

std::atomic<long> runs{ 0 };

bool has_kernel(ggml_type type) { return type == Q4_0::type || type == Q4_1::type || type == Q8_0::type; }

// Stands before llama.cpp's own traits of a tensor.
class Traits : public ggml::cpu::tensor_traits {
  public:
    explicit Traits(ggml::cpu::tensor_traits * amx) : amx(amx) {}

    bool work_size(int threads, const ggml_tensor * op, size_t & size) override {
        if (!ours(op)) {
            return amx->work_size(threads, op, size);
        }
        const int rows = op->ne[1];
        size = Input::bytes(rows, op->src[0]->ne[0]) * (rows <= kApart ? threads : 1);
        return true;
    }

    bool compute_forward(ggml_compute_params * params, ggml_tensor * op) override {
        if (!ours(op)) {
            return amx->compute_forward(params, op);
        }
        if (params->ith == 0) {
            runs.fetch_add(1, std::memory_order_relaxed);
        }
        switch (op->src[0]->type) {
            case Q4_0::type: product<Q4_0>(params, op); break;
            case Q4_1::type: product<Q4_1>(params, op); break;
            default:         product<Q8_0>(params, op); break;
        }
        return true;
    }

  private:
    static bool ours(const ggml_tensor * op) {
        const ggml_tensor * w = op->src[0];
        return op->op == GGML_OP_MUL_MAT && op->ne[1] <= (w->type == Q8_0::type ? kRowsBytes : kRows) &&
               op->ne[2] == 1 && op->ne[3] == 1 && w->ne[2] == 1 && w->ne[3] == 1;
    }

    ggml::cpu::tensor_traits * const amx;
};

} // namespace

// Lets the weights of a loaded model meet the kernel above.
extern "C" void ag_few_rows(llama_model * model) {
    for (const auto & [name, t] : llama_internal_get_tensor_map(model)) {
        if (!has_kernel(t->type) || !t->extra || !t->buffer || strcmp(ggml_backend_buffer_name(t->buffer), "AMX") != 0) {
            continue;
        }
        // All tensors of the layout share one object, which lives as long as
        // the program.
        static Traits traits((ggml::cpu::tensor_traits *) t->extra);
        t->extra = &traits;
    }
}

// How often it ran, for tests; -1: not made for this CPU.
extern "C" int64_t ag_few_rows_runs(void) {
    return runs.load(std::memory_order_relaxed);
}

#else

extern "C" int64_t ag_few_rows_runs(void) {
    return -1;
}

extern "C" void ag_few_rows(llama_model *) {}

#endif
