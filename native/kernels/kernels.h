// Our own kernels beside those of llama.cpp.
#pragma once

#include "traits.h"

#include <algorithm>
#include <utility>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__F16C__)
#define AG_KERNELS 1
#endif

// The range of n things that falls to this thread.
inline std::pair<int, int> share(const ggml_compute_params * params, int n) {
    const int each = (n + params->nth - 1) / params->nth;
    const int from = std::min(params->ith * each, n);
    return { from, std::min(from + each, n) };
}
