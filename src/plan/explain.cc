#include "plan/explain.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "base/check.hpp"
#include "base/math.hpp"
#include "plan/byte_text.hpp"

namespace megamoe {
namespace {

constexpr int kNameWidth = 18;

void line(std::ostream& out, std::string_view label, const std::string& text) {
  out << "  " << std::left << std::setw(kNameWidth) << label << text << '\n';
}

std::string activation_text(const Activation& a) {
  const std::string precision = a.fast_math ? "" : ", precise";
  if (a.kind == ActivationKind::kSwigluOai)
    return sentence("swiglu-oai, alpha ", a.alpha, ", limit ", a.limit, precision);
  if (std::isinf(a.clamp)) return "swiglu, no clamp" + precision;
  return sentence("swiglu, clamp ", a.clamp, precision);
}

void explain_problem(std::ostream& out, const Plan& plan) {
  const Problem& p = plan.problem;
  out << "plan for " << name(plan.kernel.machine) << ", " << plan.workers
      << (plan.workers == 1 ? " worker" : " workers") << " a rank\n";
  line(out,
       "problem",
       sentence("H ",
                p.hidden,
                ", I ",
                p.intermediate,
                ", E ",
                p.experts,
                " (",
                p.experts_per_rank(),
                " a rank), K ",
                p.topk,
                ", R ",
                p.ranks,
                ", C ",
                p.capacity,
                p.has_biases ? ", with biases" : ""));
  line(out, "activation", activation_text(p.activation));
  if (plan.padded_hidden != p.hidden || plan.padded_intermediate != p.intermediate)
    line(out, "padded", sentence("H to ", plan.padded_hidden, ", I to ", plan.padded_intermediate));
}

void explain_work(std::ostream& out, const Plan& plan) {
  const KernelPlan& k = plan.kernel;
  const int experts = plan.problem.experts_per_rank();
  const std::int64_t ring = plan.pool_rows / k.block_m;
  line(out,
       "blocks",
       sentence(k.block_m,
                " rows; linear 1 ",
                plan.linear1_blocks,
                " x ",
                k.linear1_block_n,
                " gate and up rows, linear 2 ",
                plan.linear2_blocks,
                " x ",
                k.linear2_block_n,
                " channels"));
  line(out,
       "waves",
       sentence("up to ",
                ceil_div(experts, plan.experts_per_wave),
                ", of at most ",
                plan.experts_per_wave,
                plan.experts_per_wave == 1 ? " expert" : " experts"));
  line(out,
       "pool",
       sentence(plan.pool_rows,
                " rows = ring of ",
                ring,
                " blocks; the full pool has ",
                plan.full_pool_rows,
                " rows"));
  if (k.machine == MachineKind::kCpu) return;
  line(out,
       "warps",
       sentence(k.dispatch_warps,
                " dispatch, ",
                k.issue_warps,
                " issue, ",
                k.math_warps,
                " math: ",
                k.threads(),
                " threads"));
  line(out,
       "pipeline",
       sentence(k.stages,
                " stages of K ",
                k.block_k,
                "; rows pulled ",
                k.pull_bytes,
                " bytes at a time",
                k.tmem_columns > 0 ? "; TMEM columns " : "",
                k.tmem_columns > 0 ? sentence(k.tmem_columns) : ""));
}

void explain_items(std::ostream& out,
                   std::string_view title,
                   std::uint64_t bytes,
                   const std::vector<PlanItem>& items) {
  out << title << ", " << byte_text(bytes) << " (" << bytes << " bytes)\n";
  for (const PlanItem& item : items)
    if (item.bytes > 0) line(out, item.name, byte_text(item.bytes));
}

nlohmann::ordered_json items_json(const std::vector<PlanItem>& items) {
  auto json = nlohmann::ordered_json::array();
  for (const PlanItem& item : items)
    json.push_back({{"name", item.name}, {"bytes", item.bytes}});
  return json;
}

// The float as a person wrote it: 1.702 and not 1.7020000219345093.
double as_written(float value) {
  char digits[32];
  const auto written = std::to_chars(digits, digits + sizeof digits, value);
  return std::stod(std::string(digits, written.ptr));
}

nlohmann::ordered_json problem_json(const Problem& p) {
  const Activation& a = p.activation;
  const bool is_oai = a.kind == ActivationKind::kSwigluOai;
  nlohmann::ordered_json json = {
      {"ranks", p.ranks},
      {"experts", p.experts},
      {"topk", p.topk},
      {"hidden", p.hidden},
      {"intermediate", p.intermediate},
      {"capacity", p.capacity},
      {"has_biases", p.has_biases},
      {"activation", is_oai ? "swiglu-oai" : "swiglu"},
  };
  if (is_oai) {
    json["alpha"] = as_written(a.alpha);
    json["limit"] = as_written(a.limit);
  } else {
    // JSON has no infinity; null is no clamp.
    json["clamp"] = std::isinf(a.clamp) ? nlohmann::ordered_json()
                                        : nlohmann::ordered_json(as_written(a.clamp));
  }
  json["fast_math"] = a.fast_math;
  return json;
}

nlohmann::ordered_json kernel_json(const KernelPlan& k) {
  nlohmann::ordered_json json = {
      {"block_m", k.block_m},
      {"linear1_block_n", k.linear1_block_n},
      {"linear2_block_n", k.linear2_block_n},
  };
  if (k.machine == MachineKind::kCpu) return json;
  json["block_k"] = k.block_k;
  json["stages"] = k.stages;
  json["dispatch_warps"] = k.dispatch_warps;
  json["issue_warps"] = k.issue_warps;
  json["math_warps"] = k.math_warps;
  json["threads"] = k.threads();
  json["store_m"] = k.store_m;
  json["pull_bytes"] = k.pull_bytes;
  json["shared_bytes"] = k.shared_bytes;
  if (k.tmem_columns > 0) json["tmem_columns"] = k.tmem_columns;
  return json;
}

}  // namespace

std::string explain(const Plan& plan) {
  std::ostringstream out;
  explain_problem(out, plan);
  explain_work(out, plan);
  out << "why\n";
  std::size_t widest = 0;
  for (const FiredRule& rule : plan.rules)
    widest = std::max(widest, rule.value.size());
  for (const FiredRule& rule : plan.rules)
    line(out, rule.field, rule.value + std::string(widest - rule.value.size() + 2, ' ') + rule.why);
  explain_items(out, "symmetric memory of a rank", plan.symmetric_bytes, plan.symmetric_items);
  if (!plan.shared_items.empty())
    explain_items(out,
                  "shared memory of a CTA",
                  static_cast<std::uint64_t>(plan.kernel.shared_bytes),
                  plan.shared_items);
  return out.str();
}

nlohmann::ordered_json to_json(const Plan& plan) {
  nlohmann::ordered_json json = {
      {"machine", name(plan.kernel.machine)},
      {"problem", problem_json(plan.problem)},
      {"expected_tokens", plan.expected_tokens},
      {"expected_rows", plan.expected_rows},
      {"workers", plan.workers},
      {"padded_hidden", plan.padded_hidden},
      {"padded_intermediate", plan.padded_intermediate},
      {"kernel", kernel_json(plan.kernel)},
      {"linear1_blocks", plan.linear1_blocks},
      {"linear2_blocks", plan.linear2_blocks},
      {"experts_per_wave", plan.experts_per_wave},
      {"pool_rows", plan.pool_rows},
      {"full_pool_rows", plan.full_pool_rows},
      {"ring_blocks", plan.pool_rows / plan.kernel.block_m},
  };
  if (plan.symmetric_budget == kNoBudget)
    json["symmetric_budget"] = nullptr;
  else
    json["symmetric_budget"] = plan.symmetric_budget;
  json["symmetric_bytes"] = plan.symmetric_bytes;
  json["symmetric_items"] = items_json(plan.symmetric_items);
  if (!plan.shared_items.empty()) json["shared_items"] = items_json(plan.shared_items);
  auto rules = nlohmann::ordered_json::array();
  for (const FiredRule& rule : plan.rules)
    rules.push_back({{"field", rule.field}, {"value", rule.value}, {"why", rule.why}});
  json["rules"] = rules;
  return json;
}

}  // namespace megamoe
