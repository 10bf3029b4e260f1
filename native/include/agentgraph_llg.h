/* What agentgraph calls of llguidance. The llg_* declarations repeat those of
 * the crate's own llguidance.h (a test compiles both together); the ag_llg_*
 * functions are in native/src/llg.rs. */
#ifndef AGENTGRAPH_LLG_H
#define AGENTGRAPH_LLG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct LlgTokenizer LlgTokenizer;
typedef struct LlgMatcher LlgMatcher;
typedef struct LlgCancellationHandle LlgCancellationHandle;
typedef size_t (*LlgTokenizeFn)(const void *user_data, const uint8_t *bytes,
                                size_t bytes_len, uint32_t *output_tokens,
                                size_t output_tokens_len);

/* 0 keeps llguidance's default. */
typedef struct AgLlgLimits {
  uint64_t initial_lexer_fuel;
  uint64_t step_lexer_fuel;
  uint64_t step_max_items;
  uint64_t max_items_in_row;
  uint64_t max_lexer_states;
  uint64_t max_grammar_size;
} AgLlgLimits;

/* The size of AgLlgLimits on the Rust side. */
size_t ag_llg_abi(void);

/* A LlgTokenizeFn: one token per byte, its number the byte. */
size_t ag_llg_tokenize_single_bytes(const void *user_data, const uint8_t *bytes,
                                    size_t bytes_len, uint32_t *output_tokens,
                                    size_t output_tokens_len);

/* eos[0] is the preferred end token. Null on error, with the reason in message. */
LlgTokenizer *ag_llg_tokenizer_new(uint32_t n_tokens, const uint32_t *token_lens,
                                   const uint8_t *token_bytes, const uint32_t *eos,
                                   uint32_t n_eos, LlgTokenizeFn tokenize,
                                   const void *tokenize_data, bool greedy,
                                   char *message, size_t message_len);

/* Null only when the call could not be made; else ask llg_matcher_get_error. */
LlgMatcher *ag_llg_matcher_new(const LlgTokenizer *tokenizer, const AgLlgLimits *limits,
                               const char *kind, const uint8_t *data, size_t data_len,
                               char *message, size_t message_len);
LlgMatcher *ag_llg_matcher_clone(const LlgMatcher *matcher, char *message, size_t message_len);

/* 0 good, 1 good with a warning, -1 bad. */
int32_t ag_llg_validate_grammar(const LlgTokenizer *tokenizer, const AgLlgLimits *limits,
                                const char *kind, const uint8_t *data, size_t data_len,
                                char *message, size_t message_len);

void llg_free_tokenizer(struct LlgTokenizer *tok);

int32_t llg_matcher_compute_mask_into(struct LlgMatcher *matcher, uint32_t *mask_dest,
                                      size_t mask_byte_len);
size_t llg_matcher_get_mask_byte_size(const struct LlgMatcher *matcher);
int32_t llg_matcher_compute_ff_tokens(struct LlgMatcher *matcher, uint32_t *output,
                                      size_t output_len);
int32_t llg_matcher_validate_tokens(struct LlgMatcher *matcher, const uint32_t *tokens,
                                    size_t n_tokens);
int32_t llg_matcher_consume_tokens(struct LlgMatcher *matcher, const uint32_t *tokens,
                                   size_t n_tokens);
int32_t llg_matcher_rollback(struct LlgMatcher *matcher, size_t num_tokens);
bool llg_matcher_is_accepting(struct LlgMatcher *matcher);
bool llg_matcher_is_stopped(const struct LlgMatcher *matcher);
bool llg_matcher_is_error(const struct LlgMatcher *matcher);
bool llg_matcher_is_cancelled(const struct LlgMatcher *matcher);
const char *llg_matcher_get_error(struct LlgMatcher *matcher);
void llg_free_matcher(struct LlgMatcher *matcher);

struct LlgCancellationHandle *llg_matcher_get_cancellation_handle(struct LlgMatcher *matcher);
void llg_cancel(const struct LlgCancellationHandle *handle);
void llg_free_cancellation_handle(struct LlgCancellationHandle *handle);

const char *llg_get_version(void);

#endif
