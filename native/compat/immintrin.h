// Stands before the compiler's own immintrin.h while the native library is
// built (native/.cargo/config.toml puts this folder on the search path), and
// mends three things in how llama.cpp's CPU code comes out of it.
#include_next <immintrin.h>

#ifndef AGENTGRAPH_IMMINTRIN_H
#define AGENTGRAPH_IMMINTRIN_H

// GCC 12's _tile_loadconfig tells the compiler that it reads 8 bytes of the
// 64 it reads. The other 56, the shapes of the tiles, are then dropped as
// dead stores, and the AMX kernels end in an illegal instruction. This one
// names all 64.
#if defined(__AMX_TILE__) && defined(__GNUC__) && !defined(__clang__)
static inline __attribute__((always_inline)) void agentgraph_tile_loadconfig(const void *config) {
  __asm__ volatile("ldtilecfg\t%0" : : "m"(*(const char(*)[64])config));
}
#define _tile_loadconfig agentgraph_tile_loadconfig
#endif

// AGENTGRAPH_TILES_ONLY leaves the rest as it is: other programs are built
// for comparison with the mend above, without which they die.
#ifndef AGENTGRAPH_TILES_ONLY

// With AVX512-FP16, llama.cpp works through half floats 128 at a time, and one
// by one in software where there are fewer. The heads of attention have 64 or
// 128, so small models run many times slower than with AVX512 alone; and it
// adds up in half floats, which loses digits.
#undef __AVX512FP16__

// The threads of a step wait for each other by spinning on _mm_pause. Where
// another program has a core, the thread that everybody waits for gets no
// time while the others spin theirs away: a step of 5 ms then takes 150 and
// more. So a wait of more than about 20 microseconds yields the core.
#if defined(__unix__) && defined(__x86_64__) && !defined(__cplusplus)
#include <sched.h>
static inline void agentgraph_pause(void) {
  static __thread unsigned long long last;
  static __thread unsigned pauses;
  unsigned long long now = __builtin_ia32_rdtsc();
  // A gap of microseconds since the last pause: another wait began.
  pauses = now - last > 10000 ? 0 : pauses + 1;
  __builtin_ia32_pause();
  if (pauses >= 300) {
    sched_yield();
    pauses = 0;
    now = __builtin_ia32_rdtsc();
  }
  last = now;
}
#define _mm_pause agentgraph_pause
#endif

#endif
#endif
