// Attention over a cache of half floats.
//
// llama.cpp works through the rows of a step one by one and key by key, with
// one exponential in scalar code for each, and adds up in half floats; from 64
// rows on it works in tiles, most of which a causal mask hides. Here the query
// heads that share a head of keys are taken together, keys that a row may not
// see are left out first, exponentials come in sixteens, and sums are floats.
// What a row comes to depends on its own keys alone, not on the rows beside it
// or on the threads.

#include "kernels.h"

#include "ggml-backend-impl.h"

#include <atomic>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef AG_KERNELS

#include "vec.h"

#include <immintrin.h>

namespace {

constexpr int kLanes     = 16;
constexpr int kMaxGroup  = 4;   // heads whose sums stay in registers
constexpr int kChunk     = 512; // keys that are added up together, at least
constexpr int kMaxChunks = 8;
constexpr int kAhead     = 12;  // values that are asked for ahead
constexpr int kEnough    = 16;  // units of work that need not be divided by keys

std::atomic<bool> enabled{ true };
std::atomic<long> runs{ 0 };

struct Shape {
    int    rows, heads, key_heads, keys, size; // size: numbers in a head
    int    group;                              // heads of one unit of work
    int    groups;                             // of one head of keys
    int    chunk, chunks;
    float  scale;

    explicit Shape(const ggml_tensor * op) {
        const ggml_tensor * q = op->src[0];
        const ggml_tensor * k = op->src[1];
        size      = q->ne[0];
        rows      = q->ne[1];
        heads     = q->ne[2];
        key_heads = k->ne[2];
        keys      = k->ne[1];
        const int shared = heads / key_heads;
        group  = std::min({ shared, 256 / size, kMaxGroup });
        groups = (shared + group - 1) / group;
        chunk  = std::max(kChunk, (keys + kMaxChunks - 1) / kMaxChunks);
        chunk  = (chunk + kLanes - 1) / kLanes * kLanes;
        chunks = (keys + chunk - 1) / chunk;
        memcpy(&scale, op->op_params, sizeof(scale));
    }

    int heads_together() const { return key_heads * groups; }

    // Whether the chunks of one row and head go to different threads.
    bool divided() const { return chunks > 1 && rows * heads_together() < kEnough; }

    // Floats of one head's result over one chunk: maximum, sum, values.
    size_t part() const { return 2 + size; }

    // Floats of one thread's notes: which keys, what the mask adds, their
    // weights for each head, sixteen keys as floats, and parts.
    size_t notes() const { return size_t(chunk) * (2 + group) + kLanes * size + group * chunks * part(); }

    size_t bytes(int threads) const {
        const size_t shared = divided() ? size_t(rows) * heads * chunks * part() : 0;
        return (threads * notes() + shared) * sizeof(float);
    }
};

bool ours(const ggml_tensor * op) {
    if (op->op != GGML_OP_FLASH_ATTN_EXT || !enabled.load(std::memory_order_relaxed)) {
        return false;
    }
    const ggml_tensor *q = op->src[0], *k = op->src[1], *v = op->src[2], *mask = op->src[3];
    float bias, softcap;
    memcpy(&bias, op->op_params + 1, sizeof(bias));
    memcpy(&softcap, op->op_params + 2, sizeof(softcap));
    return q->type == GGML_TYPE_F32 && k->type == GGML_TYPE_F16 && v->type == GGML_TYPE_F16 &&
           mask && mask->type == GGML_TYPE_F16 && !op->src[4] && bias == 0 && softcap == 0 &&
           (q->ne[0] == 64 || q->ne[0] == 128 || q->ne[0] == 256) && v->ne[0] == q->ne[0] && k->ne[0] == q->ne[0] &&
           q->ne[3] == 1 && k->ne[3] == 1 && v->ne[3] == 1 && v->ne[2] == k->ne[2] &&
           q->ne[2] % k->ne[2] == 0 && mask->ne[2] == 1 && mask->ne[3] == 1 &&
           q->nb[0] == sizeof(float) && k->nb[0] == sizeof(ggml_fp16_t) && v->nb[0] == sizeof(ggml_fp16_t) &&
           op->nb[1] == op->ne[0] * sizeof(float);
}

// Lists the keys from..to that a row may see, and what the mask adds to each.
int visible(const ggml_fp16_t * mask, int from, int to, int32_t * which, float * added) {
    int n = 0;
    for (int i = from; i < to; i += kLanes) {
        const __mmask16 inside = to - i >= kLanes ? 0xFFFF : (1u << (to - i)) - 1;
        const __m512    m      = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(inside, mask + i));
        const __mmask16 seen   = _mm512_mask_cmp_ps_mask(inside, m, _mm512_set1_ps(-INFINITY), _CMP_NEQ_UQ);
        const __m512i   cells  = _mm512_add_epi32(_mm512_set1_epi32(i),
                                                  _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        _mm512_mask_compressstoreu_epi32(which + n, seen, cells);
        _mm512_mask_compressstoreu_ps(added + n, seen, m);
        n += __builtin_popcount(seen);
    }
    return n;
}

// The sums of sixteen vectors, as one vector in their order.
inline __m512 sums(const __m512 * v) {
    __m512 a[8], b[4];
    for (int i = 0; i < 8; ++i) { // of i and i + 8
        const __m512 lo = _mm512_unpacklo_ps(v[i], v[i + 8]);
        const __m512 hi = _mm512_unpackhi_ps(v[i], v[i + 8]);
        a[i] = _mm512_add_ps(lo, hi);
    }
    for (int i = 0; i < 4; ++i) { // of i, i + 8, i + 4, i + 12
        const __m512 lo = _mm512_unpacklo_ps(a[i], a[i + 4]);
        const __m512 hi = _mm512_unpackhi_ps(a[i], a[i + 4]);
        b[i] = _mm512_add_ps(lo, hi); // each lane of 128 bits: i, i+4, i+8, i+12
    }
    const __m512 c0 = _mm512_add_ps(_mm512_shuffle_f32x4(b[0], b[1], 0x88), _mm512_shuffle_f32x4(b[0], b[1], 0xDD));
    const __m512 c1 = _mm512_add_ps(_mm512_shuffle_f32x4(b[2], b[3], 0x88), _mm512_shuffle_f32x4(b[2], b[3], 0xDD));
    const __m512 d  = _mm512_add_ps(_mm512_shuffle_f32x4(c0, c1, 0x88), _mm512_shuffle_f32x4(c0, c1, 0xDD));
    // d holds 0, 4, 8, 12, then 1, 5, 9, 13, and so on.
    return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), d);
}

// One row, SIZE numbers a head, GROUP heads that share the keys and values at k
// and v, over the keys from..to. Writes the values, and maximum and sum of the
// weights, of each head.
template <int SIZE, int GROUP>
void attend(const char * const * q, const char * k, size_t k_stride, const char * v, size_t v_stride,
            const ggml_fp16_t * mask, int from, int to, int chunk, float scale, float * notes,
            float * const * out, float * most, float * sum) {
    constexpr int N = SIZE / kLanes;
    int32_t * which   = (int32_t *) notes;
    float *   added   = notes + chunk;
    float *   weights = notes + 2 * chunk; // [GROUP][chunk]
    float *   block   = notes + (2 + GROUP) * chunk;

    const int n = visible(mask, from, to, which, added);
    __m512    top[GROUP];
    for (int g = 0; g < GROUP; ++g) {
        top[g] = _mm512_set1_ps(-INFINITY);
    }
    for (int i = 0; i < n; i += kLanes) {
        const int       here   = std::min(kLanes, n - i);
        const __mmask16 inside = here == kLanes ? 0xFFFF : (1u << here) - 1;
        for (int j = 0; j < kLanes; ++j) {
            const char * key  = k + size_t(which[i + std::min(j, here - 1)]) * k_stride;
            const char * next = k + size_t(which[std::min(i + kLanes + j, n - 1)]) * k_stride;
            for (int x = 0; x < SIZE * 2; x += 64) {
                _mm_prefetch(next + x, _MM_HINT_T0);
            }
            for (int x = 0; x < N; ++x) {
                _mm512_storeu_ps(block + j * SIZE + x * kLanes,
                                 _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) key + x)));
            }
        }
        for (int g = 0; g < GROUP; ++g) {
            __m512 query[N], dots[kLanes];
            for (int x = 0; x < N; ++x) {
                query[x] = _mm512_loadu_ps((const float *) q[g] + x * kLanes);
            }
            for (int j = 0; j < kLanes; ++j) {
                const float * key = block + j * SIZE;
                __m512 dot = _mm512_mul_ps(query[0], _mm512_loadu_ps(key));
                for (int x = 1; x < N; ++x) {
                    dot = _mm512_fmadd_ps(query[x], _mm512_loadu_ps(key + x * kLanes), dot);
                }
                dots[j] = dot;
            }
            __m512 score = _mm512_fmadd_ps(sums(dots), _mm512_set1_ps(scale), _mm512_maskz_loadu_ps(inside, added + i));
            score = _mm512_mask_blend_ps(inside, _mm512_set1_ps(-INFINITY), score);
            _mm512_storeu_ps(weights + g * chunk + i, score);
            top[g] = _mm512_max_ps(top[g], score);
        }
    }
    for (int g = 0; g < GROUP; ++g) {
        most[g] = _mm512_reduce_max_ps(top[g]);
        const __m512 m = _mm512_set1_ps(most[g]);
        __m512 total = _mm512_setzero_ps();
        for (int i = 0; i < n; i += kLanes) {
            float *      w = weights + g * chunk + i;
            const __m512 e = ggml_v_expf(_mm512_sub_ps(_mm512_loadu_ps(w), m));
            _mm512_storeu_ps(w, e);
            total = _mm512_add_ps(total, e);
        }
        sum[g] = n > 0 ? _mm512_reduce_add_ps(total) : 0;
    }
    __m512 acc[GROUP][N];
    for (int g = 0; g < GROUP; ++g) {
        for (int x = 0; x < N; ++x) {
            acc[g][x] = _mm512_setzero_ps();
        }
    }
    for (int i = 0; i < n; ++i) {
        const __m256i * value = (const __m256i *) (v + size_t(which[i]) * v_stride);
        const char *    next  = v + size_t(which[std::min(i + kAhead, n - 1)]) * v_stride;
        for (int x = 0; x < SIZE * 2; x += 64) {
            _mm_prefetch(next + x, _MM_HINT_T0);
        }
        for (int x = 0; x < N; ++x) {
            const __m512 part = _mm512_cvtph_ps(_mm256_loadu_si256(value + x));
            for (int g = 0; g < GROUP; ++g) {
                acc[g][x] = _mm512_fmadd_ps(part, _mm512_set1_ps(weights[g * chunk + i]), acc[g][x]);
            }
        }
    }
    for (int g = 0; g < GROUP; ++g) {
        for (int x = 0; x < N; ++x) {
            _mm512_storeu_ps(out[g] + x * kLanes, acc[g][x]);
        }
    }
}

using Attend = decltype(&attend<64, 1>);

Attend pick(int size, int group) {
    switch (size * 8 + group) {
        case 64 * 8 + 1: return attend<64, 1>;
        case 64 * 8 + 2: return attend<64, 2>;
        case 64 * 8 + 3: return attend<64, 3>;
        case 64 * 8 + 4: return attend<64, 4>;
        case 128 * 8 + 1: return attend<128, 1>;
        case 128 * 8 + 2: return attend<128, 2>;
        default: return attend<256, 1>;
    }
}

float * result(const ggml_tensor * op, int row, int head) {
    return (float *) ((char *) op->data + (head + size_t(row) * op->ne[1]) * op->nb[1]);
}

void scale_row(float * x, int n, float by) {
    for (int i = 0; i < n; i += kLanes) {
        _mm512_storeu_ps(x + i, _mm512_mul_ps(_mm512_loadu_ps(x + i), _mm512_set1_ps(by)));
    }
}

// Puts the parts of one head together.
void combine(const Shape & s, const float * parts, float * out) {
    float most = -INFINITY, sum = 0;
    for (int c = 0; c < s.chunks; ++c) {
        const float * p = parts + c * s.part();
        most = p[1] > 0 ? std::max(most, p[0]) : most;
    }
    memset(out, 0, s.size * sizeof(float));
    for (int c = 0; c < s.chunks; ++c) {
        const float * p = parts + c * s.part();
        if (p[1] > 0) {
            const float by = expf(p[0] - most);
            sum += p[1] * by;
            ggml_vec_mad_f32(s.size, out, p + 2, by);
        }
    }
    scale_row(out, s.size, sum > 0 ? 1 / sum : 0);
}

// One attention, as one thread sees it.
struct Task {
    const ggml_compute_params * params;
    ggml_tensor *               op;
    const Shape                 s;
    float * const               notes; // this thread's
    float * const               shared;

    Task(ggml_compute_params * params, ggml_tensor * op)
        : params(params), op(op), s(op), notes((float *) params->wdata + params->ith * s.notes()),
          shared((float *) params->wdata + params->nth * s.notes()) {}

    // One row and some heads from first on over chunk c, into their parts.
    void chunk(int row, int first, int n, int c, float * const * parts) {
        const ggml_tensor *q = op->src[0], *k = op->src[1], *v = op->src[2], *mask = op->src[3];
        const int    kh = first / (s.heads / s.key_heads);
        const char * queries[kMaxGroup];
        float *      out[kMaxGroup];
        float        most[kMaxGroup], sum[kMaxGroup];
        for (int h = 0; h < n; ++h) {
            queries[h] = (const char *) q->data + row * q->nb[1] + (first + h) * q->nb[2];
            out[h]     = parts[h] + c * s.part() + 2;
        }
        pick(s.size, n)(queries, (const char *) k->data + kh * k->nb[2], k->nb[1],
                        (const char *) v->data + kh * v->nb[2], v->nb[1],
                        (const ggml_fp16_t *) ((const char *) mask->data + row * mask->nb[1]), c * s.chunk,
                        std::min((c + 1) * s.chunk, s.keys), s.chunk, s.scale, notes, out, most, sum);
        for (int h = 0; h < n; ++h) {
            out[h][-2] = most[h];
            out[h][-1] = sum[h];
        }
    }

    // The heads of group i of all groups: where they begin, and how many.
    std::pair<int, int> group(int i) const {
        const int kh = i / s.groups, each = s.heads / s.key_heads;
        const int first = kh * each + i % s.groups * s.group;
        return { first, std::min(s.group, (kh + 1) * each - first) };
    }

    void run() {
        // Rows that read the same keys follow each other.
        const int units = s.rows * s.heads_together() * (s.divided() ? s.chunks : 1);
        auto [from, to] = share(params, units);
        float * parts[kMaxGroup];
        for (int u = from; u < to; ++u) {
            const int row = u % s.rows;
            if (s.divided()) {
                auto [first, n] = group(u / s.rows / s.chunks);
                for (int h = 0; h < n; ++h) {
                    parts[h] = shared + (size_t(row) * s.heads + first + h) * s.chunks * s.part();
                }
                chunk(row, first, n, u / s.rows % s.chunks, parts);
                continue;
            }
            auto [first, n] = group(u / s.rows);
            float * mine = notes + size_t(s.chunk) * (2 + s.group) + kLanes * s.size;
            for (int h = 0; h < n; ++h) {
                parts[h] = mine + h * s.chunks * s.part();
            }
            for (int c = 0; c < s.chunks; ++c) {
                chunk(row, first, n, c, parts);
            }
            for (int h = 0; h < n; ++h) {
                combine(s, parts[h], result(op, row, first + h));
            }
        }
        if (!s.divided()) {
            return;
        }
        ggml_barrier(params->threadpool);
        auto [begin, end] = share(params, s.rows * s.heads);
        for (int i = begin; i < end; ++i) {
            combine(s, shared + size_t(i) * s.chunks * s.part(), result(op, i / s.heads, i % s.heads));
        }
    }
};

class Traits : public ggml::cpu::tensor_traits {
    bool work_size(int threads, const ggml_tensor * op, size_t & size) override {
        size = Shape(op).bytes(threads);
        return true;
    }
    bool compute_forward(ggml_compute_params * params, ggml_tensor * op) override {
        if (params->ith == 0) {
            runs.fetch_add(1, std::memory_order_relaxed);
        }
        Task(params, op).run();
        return true;
    }
};

// llama.cpp asks the buffer types of its CPU part about every operation. This
// one holds no weights.
class NoBuffer : public ggml::cpu::extra_buffer_type {
    bool supports_op(ggml_backend_dev_t, const ggml_tensor *) override { return false; }
    ggml::cpu::tensor_traits * get_tensor_traits(const ggml_tensor * op) override {
        static Traits traits;
        return ours(op) ? &traits : nullptr;
    }
};

} // namespace

// Lets llama.cpp meet the kernel above; called once, before anything else.
extern "C" void ag_attention_register(void) {
    static ggml_backend_buffer_type type = {};
    type.iface.get_name      = [](ggml_backend_buffer_type_t) { return "agentgraph"; };
    type.iface.alloc_buffer  = [](ggml_backend_buffer_type_t, size_t) -> ggml_backend_buffer_t { return nullptr; };
    type.iface.get_alignment = [](ggml_backend_buffer_type_t) { return size_t(64); };
    type.context             = new NoBuffer;
    ggml_backend_cpu_get_extra_buffer_types().push_back(&type);
}

// Never while a graph is computed: its threads would not all do the same.
extern "C" void ag_attention_enable(int on) {
    enabled.store(on != 0, std::memory_order_relaxed);
}

// How often it ran, for tests; -1: not made for this CPU.
extern "C" int64_t ag_attention_runs(void) {
    return runs.load(std::memory_order_relaxed);
}

#else

extern "C" int64_t ag_attention_runs(void) { return -1; }
extern "C" void ag_attention_register(void) {}
extern "C" void ag_attention_enable(int) {}

#endif
