/* What the engine uses of Rust libraries: chat templates through minijinja.
 *
 * Rules for every function here:
 *   - it returns; a panic inside Rust becomes CICADA_BRIDGE_INTERNAL;
 *   - pointers are not null unless said so; data of size 0 may be null;
 *   - text given out is UTF-8, not terminated by zero, and freed with cicada_bridge_text_free();
 *   - it may be called from several threads at once, also with the same template.
 * The other side is bridge/src/lib.rs; both must change together. */
#ifndef CICADA_BRIDGE_H
#define CICADA_BRIDGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum CicadaBridgeStatus {
  CICADA_BRIDGE_OK = 0,
  CICADA_BRIDGE_RAISED = 1, /* the template called raise_exception; the text is its message */
  CICADA_BRIDGE_SYNTAX = 2, /* the template cannot be parsed: "line 3: unexpected end of block" */
  CICADA_BRIDGE_LIMIT = 3,  /* steps, time, depth, memory, output or source size */
  CICADA_BRIDGE_OTHER = 4,  /* it failed while running: "line 2: tried to use + operator on …" */
  CICADA_BRIDGE_INTERNAL = 5, /* our fault */
} CicadaBridgeStatus;

/* Text owned by the bridge. */
typedef struct CicadaBridgeText {
  char* data;
  size_t size; /* bytes */
} CicadaBridgeText;

/* A compiled template; immutable. */
typedef struct CicadaTemplate CicadaTemplate;

typedef struct CicadaRenderLimits {
  uint64_t max_output_bytes; /* of the rendered text, and of every text on the way */
  uint64_t max_memory_bytes; /* held by the rendering beside its variables; checked between steps */
  uint64_t max_time_ms;      /* of processor; a backstop, the limit on steps ends plain loops */
} CicadaRenderLimits;

/* Compiles Jinja source of at most 1 MiB, with trim_blocks and lstrip_blocks set.
 * OK: *template_out is owned by the caller. Otherwise *error is one sentence (SYNTAX, LIMIT). */
CicadaBridgeStatus cicada_template_compile(const char* source, size_t source_size,
                                           CicadaTemplate** template_out, CicadaBridgeText* error);

/* Renders with `variables`, a JSON object of everything the template sees (messages, tools,
 * add_generation_prompt, bos_token, eos_token, …; a key that is absent is undefined).
 * `now_unix_s` is the clock of strftime_now(), read as UTC: same arguments, same text.
 * *text_out is the rendered text, or one sentence about the error. */
CicadaBridgeStatus cicada_template_render(const CicadaTemplate* compiled, const char* variables,
                                          size_t variables_size, const CicadaRenderLimits* limits,
                                          int64_t now_unix_s, CicadaBridgeText* text_out);

/* Null is allowed. */
void cicada_template_free(CicadaTemplate* compiled);

/* Frees and empties; an empty text is allowed. */
void cicada_bridge_text_free(CicadaBridgeText* text);

#ifdef __cplusplus
}
#endif

#endif /* CICADA_BRIDGE_H */
