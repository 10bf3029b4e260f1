// Stands before the compiler's own immintrin.h while the native library is
// built (native/.cargo/config.toml puts this folder on the search path).
//
// GCC 12's _tile_loadconfig tells the compiler that it reads 8 bytes of the
// 64 it reads. The other 56, the shapes of the tiles, are then dropped as
// dead stores, and llama.cpp's AMX kernels end in an illegal instruction.
// This one names all 64.
#include_next <immintrin.h>

#if defined(__AMX_TILE__) && defined(__GNUC__) && !defined(__clang__) && !defined(AGENTGRAPH_TILE_LOADCONFIG)
#define AGENTGRAPH_TILE_LOADCONFIG
static inline __attribute__((always_inline)) void agentgraph_tile_loadconfig(const void *config) {
  __asm__ volatile("ldtilecfg\t%0" : : "m"(*(const char(*)[64])config));
}
#define _tile_loadconfig agentgraph_tile_loadconfig
#endif
