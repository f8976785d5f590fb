/* One rank, all experts, in C99. */

#include <megamoe/megamoe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXPERTS = 4, TOPK = 2, HIDDEN = 64, INTERMEDIATE = 32, TOKENS = 3 };

/* 16-byte aligned, as an output must be; so is what malloc gives. */
static uint16_t rows[TOKENS * HIDDEN];

static int say(const char* what) {
  fprintf(stderr, "%s: %s\n", what, megamoe_last_error());
  return 1;
}

/* All experts alike: FP4 codes of 1.0 (0x2) with scales of 2^-7. */
static int set_experts(megamoe_layer* layer) {
  static uint8_t codes[2 * INTERMEDIATE * HIDDEN / 2];
  static uint8_t scales[2 * INTERMEDIATE * HIDDEN / 32];
  megamoe_weights weights = MEGAMOE_WEIGHTS_INIT;
  int expert;
  memset(codes, 0x22, sizeof codes);
  memset(scales, 120, sizeof scales);
  weights.linear1 = codes;
  weights.linear1_scale = scales;
  weights.linear2 = codes;
  weights.linear2_scale = scales;
  for (expert = 0; expert < EXPERTS; ++expert)
    if (megamoe_layer_set_expert(layer, expert, &weights) != MEGAMOE_OK) return say("set_expert");
  return 0;
}

static int set_tokens(megamoe_layer* layer) {
  megamoe_tokens tokens = MEGAMOE_TOKENS_INIT;
  megamoe_routing routing = MEGAMOE_ROUTING_INIT;
  int64_t ids[TOKENS * TOPK];
  float weights[TOKENS * TOPK];
  int i;
  for (i = 0; i < TOKENS * HIDDEN; ++i)
    rows[i] = 0x3F80; /* 1.0 */
  tokens.num_tokens = TOKENS;
  tokens.rows = rows;
  if (megamoe_layer_set_tokens(layer, &tokens) != MEGAMOE_OK) return say("set_tokens");
  for (i = 0; i < TOKENS * TOPK; ++i) {
    ids[i] = i % EXPERTS;
    weights[i] = 0.5F;
  }
  routing.num_tokens = TOKENS;
  routing.ids = ids;
  routing.weights = weights;
  if (megamoe_layer_set_routing(layer, &routing) != MEGAMOE_OK) return say("set_routing");
  return 0;
}

static int run(megamoe_layer* layer, uint16_t* output) {
  megamoe_forward arguments = MEGAMOE_FORWARD_INIT;
  megamoe_report report = MEGAMOE_REPORT_INIT;
  uint32_t expert_rows[EXPERTS];
  arguments.num_tokens = TOKENS;
  arguments.output = output;
  report.expert_rows = expert_rows;
  if (megamoe_layer_forward(layer, &arguments, &report) != MEGAMOE_OK) return say("forward");
  printf("%d tokens in %.2f ms; expert 0 had %u rows\n",
         TOKENS,
         report.total_ms,
         (unsigned)expert_rows[0]);
  return 0;
}

int main(void) {
  megamoe_problem problem = MEGAMOE_PROBLEM_INIT;
  megamoe_group* group = NULL;
  megamoe_layer* layer = NULL;
  uint16_t* output = malloc(sizeof rows);
  int failed = output == NULL;

  problem.experts = EXPERTS;
  problem.topk = TOPK;
  problem.hidden = HIDDEN;
  problem.intermediate = INTERMEDIATE;
  problem.capacity = TOKENS;

  if (!failed && megamoe_group_in_process(1, &group) != MEGAMOE_OK) failed = say("group");
  if (!failed && megamoe_layer_create(group, &problem, NULL, &layer) != MEGAMOE_OK)
    failed = say("layer");
  if (!failed) failed = set_experts(layer) || set_tokens(layer) || run(layer, output);

  megamoe_layer_destroy(layer);
  megamoe_group_destroy(group);
  free(output);
  return failed;
}
