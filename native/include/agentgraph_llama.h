// What the Go side calls of llama.cpp and of our wrappers around it. The
// llama_* and ggml_* declarations repeat llama.h of the pinned crate word for
// word in types; a test compiles this file together with it.
#ifndef AGENTGRAPH_LLAMA_H
#define AGENTGRAPH_LLAMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// llama.cpp, unchanged.

struct llama_model;
struct llama_context;
struct llama_vocab;
struct llama_memory_i;
typedef struct llama_memory_i *llama_memory_t;
typedef int32_t llama_pos;
typedef int32_t llama_token;
typedef int32_t llama_seq_id;

const char *llama_print_system_info(void);
bool llama_supports_gpu_offload(void);

void llama_model_free(struct llama_model *model);
const struct llama_vocab *llama_model_get_vocab(const struct llama_model *model);
int32_t llama_model_n_ctx_train(const struct llama_model *model);
int32_t llama_model_meta_val_str(const struct llama_model *model, const char *key, char *buf, size_t buf_size);
int32_t llama_model_desc(const struct llama_model *model, char *buf, size_t buf_size);
uint64_t llama_model_size(const struct llama_model *model);
const char *llama_model_chat_template(const struct llama_model *model, const char *name);
bool llama_model_has_encoder(const struct llama_model *model);
bool llama_model_has_decoder(const struct llama_model *model);
bool llama_model_is_recurrent(const struct llama_model *model);
bool llama_model_is_hybrid(const struct llama_model *model);
bool llama_model_is_diffusion(const struct llama_model *model);

int32_t llama_vocab_n_tokens(const struct llama_vocab *vocab);
llama_token llama_vocab_bos(const struct llama_vocab *vocab);
llama_token llama_vocab_eos(const struct llama_vocab *vocab);
bool llama_vocab_get_add_bos(const struct llama_vocab *vocab);
const char *llama_vocab_get_text(const struct llama_vocab *vocab, llama_token token);
const llama_token *llama_vocab_get_suppress_tokens(const struct llama_vocab *vocab, int32_t *n_suppress_tokens);
int32_t llama_tokenize(const struct llama_vocab *vocab, const char *text, int32_t text_len, llama_token *tokens,
                       int32_t n_tokens_max, bool add_special, bool parse_special);

uint32_t llama_n_ctx(const struct llama_context *ctx);
llama_memory_t llama_get_memory(const struct llama_context *ctx);
void llama_memory_clear(llama_memory_t mem, bool data);
bool llama_memory_seq_rm(llama_memory_t mem, llama_seq_id seq_id, llama_pos p0, llama_pos p1);
void llama_memory_seq_cp(llama_memory_t mem, llama_seq_id seq_id_src, llama_seq_id seq_id_dst, llama_pos p0, llama_pos p1);
llama_pos llama_memory_seq_pos_min(llama_memory_t mem, llama_seq_id seq_id);
llama_pos llama_memory_seq_pos_max(llama_memory_t mem, llama_seq_id seq_id);
void llama_set_n_threads(struct llama_context *ctx, int32_t n_threads, int32_t n_threads_batch);

// Ours: native/src/llama.rs says what each does.

typedef struct ag_model_params {
  int32_t n_gpu_layers;
  int32_t use_mmap;
  int32_t use_extra_bufts;
  int32_t vocab_only;
  int32_t own_kernels;
} ag_model_params;

typedef struct ag_context_params {
  uint32_t n_ctx;
  uint32_t n_batch;
  uint32_t n_ubatch;
  uint32_t n_seq_max;
  uint32_t n_outputs_max;
  int32_t n_threads;
  int32_t n_threads_batch;
  int32_t flash_attn;
  int32_t kv_unified;
  int32_t poll;
  int32_t own_kernels;
} ag_context_params;

typedef struct ag_sampling {
  float temperature;
  float top_p;
  float min_p;
  int32_t top_k;
  uint64_t rng;
} ag_sampling;

typedef struct ag_context ag_context;
typedef struct ag_tokenizer ag_tokenizer;

enum { AG_TOKEN_SPECIAL = 1, AG_TOKEN_END = 2, AG_TOKEN_UNUSED = 4 };
enum { AG_SAMPLE_NONE = -1, AG_SAMPLE_NAN = -2, AG_SAMPLE_NO_LOGITS = -3 };

void ag_log_tail(char *buf, size_t len);

struct llama_model *ag_model_load(const char *path, const ag_model_params *params, char *err, size_t err_len);
size_t ag_vocab_pieces(const struct llama_vocab *vocab, uint8_t *buf, size_t cap, uint32_t *ends, uint8_t *kinds);

ag_tokenizer *ag_tokenizer_new(const struct llama_vocab *vocab);
void ag_tokenizer_free(ag_tokenizer *t);
size_t ag_tokenize(const void *user, const uint8_t *bytes, size_t len, uint32_t *out, size_t out_len);

ag_context *ag_context_new(struct llama_model *model, const ag_context_params *params, char *err, size_t err_len);
void ag_context_free(ag_context *c);
struct llama_context *ag_context_llama(ag_context *c);
void ag_context_abort(ag_context *c, int32_t on);
int32_t ag_decode(ag_context *c, int32_t n, llama_token *tokens, llama_pos *pos, llama_seq_id *seqs, int8_t *logits,
                  char *err, size_t err_len);
int32_t ag_sample(ag_context *c, int32_t row, const uint32_t *mask, size_t words, ag_sampling *sampling);
int32_t ag_logprobs(ag_context *c, int32_t row, llama_token token, int32_t top, float *own, llama_token *ids, float *logprobs);
float ag_margin(ag_context *c, int32_t row, const uint32_t *mask, size_t words, llama_token token);
int32_t ag_plain_loop(ag_context *c, llama_token token, llama_pos pos, int32_t n);

int32_t ag_model_quantize(const char *from, const char *to, uint32_t ftype, int32_t threads, char *err, size_t err_len);

typedef struct ag_attention_shape {
  int32_t rows;
  int32_t heads;
  int32_t key_heads;
  int32_t keys;
  int32_t size;
  int32_t threads;
  int32_t own_kernels;
  float scale;
} ag_attention_shape;

int64_t ag_attention_runs(void);
int64_t ag_few_rows_runs(void);
int32_t ag_attention_check(const ag_attention_shape *shape, const float *q, const float *k, const float *v,
                           const float *mask, float *out);

uint64_t ag_type_row_size(uint32_t kind, uint64_t n);
void ag_llama_struct_sizes(size_t *out, size_t len);

// Renders a chat template (native/src/chat.rs). The prompt, or an error text
// when ag_chat_render returns non-zero, stands in *out until ag_chat_free.
typedef struct ag_chat_result {
  char *text;
  size_t len;
  int32_t used_clock;
} ag_chat_result;

int32_t ag_chat_render(const char *tmpl, size_t tmpl_len, const char *context, size_t context_len, ag_chat_result *out);
void ag_chat_free(ag_chat_result *out);

#ifdef __cplusplus
}
#endif
#endif
