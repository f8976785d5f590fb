/* The C interface of megamoe, and the only binary one. C99.
 *
 * Every function that can fail returns a status; megamoe_last_error() then has the sentence.
 * Structures begin with their size, set by their *_INIT, so that later versions may append fields.
 * Handles are made by *_create (or megamoe_group_*) and given back by *_destroy; a null handle, or
 * one that was given back, is refused by name. One thread at a time per group and per layer. */
#ifndef MEGAMOE_MEGAMOE_H
#define MEGAMOE_MEGAMOE_H

/* NOLINTBEGIN(modernize-*,readability-identifier-naming): C99, in C's names */

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum megamoe_status {
  MEGAMOE_OK = 0,
  MEGAMOE_INVALID_ARGUMENT = 1, /* a value is out of its bounds, on this rank or another */
  MEGAMOE_BAD_FILE = 2, /* a file is truncated, lies about itself, or lacks what is needed */
  MEGAMOE_UNSUPPORTED_MACHINE = 3, /* this computer can't do it */
  MEGAMOE_RUN_FAILED = 4, /* a wait expired, or a rank died or left; see megamoe_layer_reset() */
  MEGAMOE_INTERNAL = 5    /* a promise of this library is broken; please report it */
} megamoe_status;

typedef struct megamoe_group megamoe_group; /* one rank's view of the ranks */
typedef struct megamoe_layer megamoe_layer; /* one rank's part of a layer */

/* Why this thread's last call failed; valid until its next call into this library. Never null. */
const char* megamoe_last_error(void);
const char* megamoe_status_name(megamoe_status status);
const char* megamoe_version(void);

/* ---- groups ---- */

/* A rank's place among processes that somebody else started on this host. */
typedef struct megamoe_place {
  size_t struct_size;
  int32_t rank;
  int32_t ranks;
  const char* name;    /* of the meeting, the same on all ranks and no other group's */
  uint64_t timeout_ms; /* 0: wait for ever */
} megamoe_place;
#define MEGAMOE_PLACE_INIT \
  { sizeof(megamoe_place), 0, 1, NULL, 60000 }

/* All ranks in this process: groups[0..ranks-1], each for a thread of its own. */
megamoe_status megamoe_group_in_process(int32_t ranks, megamoe_group** groups);
/* Collective: this process is one rank. */
megamoe_status megamoe_group_processes(const megamoe_place* place, megamoe_group** group);
/* Collective: the place comes from the environment (RANK and WORLD_SIZE and the like). */
megamoe_status megamoe_group_from_environment(uint64_t timeout_ms, megamoe_group** group);
int32_t megamoe_group_rank(const megamoe_group* group);  /* -1 without a group */
int32_t megamoe_group_ranks(const megamoe_group* group); /* -1 without a group */
void megamoe_group_destroy(megamoe_group* group);        /* null is legal; layers live on */

/* ---- layers ---- */

enum { MEGAMOE_SWIGLU = 0, MEGAMOE_SWIGLU_OAI = 1 };

/* What a layer is, the same on all ranks. */
typedef struct megamoe_problem {
  size_t struct_size;
  int32_t ranks;
  int32_t experts; /* of all ranks */
  int32_t topk;
  int32_t hidden;
  int32_t intermediate;
  int32_t capacity; /* tokens of a rank in one call, at most */
  int32_t has_biases;
  int32_t activation; /* MEGAMOE_SWIGLU or MEGAMOE_SWIGLU_OAI */
  float clamp;        /* SwiGLU; HUGE_VALF: none */
  float alpha;        /* SwiGLU-OAI */
  float limit;        /* SwiGLU-OAI */
  int32_t fast_math;
} megamoe_problem;
#define MEGAMOE_PROBLEM_INIT \
  { sizeof(megamoe_problem), 1, 1, 1, 32, 32, 1, 0, MEGAMOE_SWIGLU, HUGE_VALF, 1.702F, 7.0F, 1 }

/* How it is run. machine, instruction_set, pool_rows and memory_budget are the same on all ranks.
 */
typedef struct megamoe_layer_options {
  size_t struct_size;
  const char* machine;         /* null: auto */
  const char* instruction_set; /* null: the best of this computer */
  int32_t workers;             /* 0: cores / ranks */
  int32_t expected_tokens;     /* 0: each call's own */
  int64_t pool_rows;           /* 0: what memory_budget allows */
  uint64_t memory_budget;      /* bytes; 0: no bound */
  uint64_t timeout_ms;         /* of every wait; 0: none */
  void* const* bases;          /* [ranks] symmetric memory of the caller's own; null: allocated */
  uint64_t bases_bytes;        /* of each */
  const char* numerics; /* fast or exact, the same on all ranks; null: as the machine has it */
  int32_t device;       /* GPU: this rank's card; -1: spread over those that are visible */
  int32_t num_sms;      /* GPU: SMs that a call may take; 0: a share */
} megamoe_layer_options;
#define MEGAMOE_LAYER_OPTIONS_INIT \
  { sizeof(megamoe_layer_options), NULL, NULL, 0, 0, 0, 0, 60000, NULL, 0, NULL, -1, 0 }

/* One expert in canonical layout. */
typedef struct megamoe_weights {
  size_t struct_size;
  const uint8_t* linear1;       /* [2I][H/2] E2M1, gate rows, then up rows */
  const uint8_t* linear1_scale; /* [2I][H/32] UE8M0 */
  const uint8_t* linear2;       /* [H][I/2] */
  const uint8_t* linear2_scale; /* [H][I/32] */
  const float* linear1_bias;    /* [2I], or null */
  const float* linear2_bias;    /* [H], or null */
} megamoe_weights;
#define MEGAMOE_WEIGHTS_INIT \
  { sizeof(megamoe_weights), NULL, NULL, NULL, NULL, NULL, NULL }

/* This rank's input in symmetric memory; the addresses stay as long as the layer. On a GPU machine
 * they are of device memory: the set functions below take host memory on every machine. */
typedef struct megamoe_inputs {
  size_t struct_size;
  uint8_t* tokens;       /* [capacity][hidden] E4M3 */
  uint8_t* token_scales; /* [capacity][hidden/32] UE8M0 */
  float* topk_weights;   /* [capacity][topk] */
  int64_t* topk_ids;     /* [capacity][topk]; below 0: masked */
} megamoe_inputs;
#define MEGAMOE_INPUTS_INIT \
  { sizeof(megamoe_inputs), NULL, NULL, NULL, NULL }

typedef struct megamoe_tokens {
  size_t struct_size;
  int64_t first; /* the token of the inputs that rows[0] becomes */
  int64_t num_tokens;
  const uint16_t* rows; /* [num_tokens][hidden] bf16 */
} megamoe_tokens;
#define MEGAMOE_TOKENS_INIT \
  { sizeof(megamoe_tokens), 0, 0, NULL }

/* Tokens that are quantised already. */
typedef struct megamoe_quantized_tokens {
  size_t struct_size;
  int64_t first;
  int64_t num_tokens;
  const uint8_t* codes;  /* [num_tokens][hidden] E4M3 */
  const uint8_t* scales; /* [num_tokens][hidden/32] UE8M0 */
} megamoe_quantized_tokens;
#define MEGAMOE_QUANTIZED_TOKENS_INIT \
  { sizeof(megamoe_quantized_tokens), 0, 0, NULL, NULL }

typedef struct megamoe_routing {
  size_t struct_size;
  int64_t first;
  int64_t num_tokens;
  const int64_t* ids;   /* [num_tokens][topk]; below 0: masked */
  const float* weights; /* [num_tokens][topk] */
} megamoe_routing;
#define MEGAMOE_ROUTING_INIT \
  { sizeof(megamoe_routing), 0, 0, NULL, NULL }

typedef struct megamoe_forward {
  size_t struct_size;
  int64_t num_tokens;
  uint16_t* output; /* [num_tokens][hidden] bf16, 16-byte aligned; may be null without tokens. In
                       host memory or, with a GPU machine, of the rank's card */
} megamoe_forward;
#define MEGAMOE_FORWARD_INIT \
  { sizeof(megamoe_forward), 0, NULL }

/* A call on a stream of the caller's, not waited for. GPU machines only. */
typedef struct megamoe_stream_call {
  size_t struct_size;
  void* stream; /* a cudaStream_t */
  int64_t num_tokens;
  const int32_t*
      num_tokens_on_device; /* null, or read when the call runs; replays see new values */
  int32_t expected_tokens;  /* for the plan; 0: as the layer's options say */
  uint16_t* output;         /* of the rank's card */
} megamoe_stream_call;
#define MEGAMOE_STREAM_CALL_INIT \
  { sizeof(megamoe_stream_call), NULL, 0, NULL, 0, NULL }

/* What a call did on this rank; times in milliseconds. */
typedef struct megamoe_report {
  size_t struct_size;
  uint32_t* expert_rows; /* in: null, or room for experts / ranks words; filled in */
  double route_ms;
  double compute_ms;
  double meet_ms;
  double combine_ms;
  double finish_ms;
  double total_ms;
  uint64_t bytes_pulled; /* from other ranks */
  uint64_t bytes_pushed; /* to other ranks */
  int32_t block_m;
  uint32_t masked_ids;  /* GPU machines: ids past the last expert, since the last look */
  int64_t masked_token; /* where one of the first of them is */
  int32_t masked_slot;
} megamoe_report;
#define MEGAMOE_REPORT_INIT \
  { sizeof(megamoe_report), NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Collective. `options` may be null. */
megamoe_status megamoe_layer_create(megamoe_group* group,
                                    const megamoe_problem* problem,
                                    const megamoe_layer_options* options,
                                    megamoe_layer** layer);
/* Another layer of the same problem on the same memory and workers, with weights of its own. */
megamoe_status megamoe_layer_sibling(megamoe_layer* layer, megamoe_layer** sibling);
void megamoe_layer_destroy(megamoe_layer* layer); /* null is legal */

megamoe_status megamoe_layer_set_expert(megamoe_layer* layer,
                                        int32_t local_expert,
                                        const megamoe_weights* weights);
megamoe_status megamoe_layer_inputs(megamoe_layer* layer, megamoe_inputs* inputs);
megamoe_status megamoe_layer_set_tokens(megamoe_layer* layer, const megamoe_tokens* tokens);
megamoe_status megamoe_layer_set_quantized_tokens(megamoe_layer* layer,
                                                  const megamoe_quantized_tokens* tokens);
megamoe_status megamoe_layer_set_routing(megamoe_layer* layer, const megamoe_routing* routing);
/* Collective. `report` may be null. */
megamoe_status megamoe_layer_forward(megamoe_layer* layer,
                                     const megamoe_forward* arguments,
                                     megamoe_report* report);
/* Collective: puts a call on a stream and returns; may be captured in a CUDA graph. */
megamoe_status megamoe_layer_enqueue(megamoe_layer* layer, const megamoe_stream_call* call);
/* Waits for what is on the stream and says how the calls on it ended. `report` may be null. */
megamoe_status megamoe_layer_wait(megamoe_layer* layer, void* stream, megamoe_report* report);
/* Collective: after MEGAMOE_RUN_FAILED, makes the layer usable again. */
megamoe_status megamoe_layer_reset(megamoe_layer* layer);

/* ---- plans ---- */

enum { MEGAMOE_PLAN_TEXT = 0, MEGAMOE_PLAN_JSON = 1 };

/* Writes the plan of such a layer, or of a layer's last call, with its reasons. *bytes: in, the
 * room at `text`; out, what the whole takes, its final zero included. Less room than that is no
 * error: what fits is written. */
megamoe_status megamoe_plan(const megamoe_problem* problem,
                            int32_t format,
                            char* text,
                            size_t* bytes);
megamoe_status megamoe_layer_plan(megamoe_layer* layer, int32_t format, char* text, size_t* bytes);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-*,readability-identifier-naming) */

#endif /* MEGAMOE_MEGAMOE_H */
