// How the lane functions of simd-inl.h are inlined.
#pragma once

// By force, so that sixteen lanes stay in registers; but the scalar level's lanes are loops, and
// sanitizers multiply every load, so that forcing would only bloat their code.
#if defined(__AVX2__) && !defined(__SANITIZE_ADDRESS__)
#define CICADA_INLINE [[gnu::always_inline]] inline
#else
#define CICADA_INLINE inline
#endif
