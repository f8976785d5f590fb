#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "files/weight_source.hpp"
#include "megamoe/layer_options.hpp"
#include "megamoe/problem.hpp"

namespace megamoe::cli {

// Groups of options that several verbs share: each is a value with a function that adds its flags.

/// Which layer to read.
struct WeightArguments {
  std::string path;
  WeightOptions options;
};
void add_weights(CLI::App& verb, WeightArguments& to);
void add_layer(CLI::App& verb, WeightOptions& to);

/// Which activation; what is not said comes from the weights.
struct ActivationArguments {
  std::string kind;
  std::optional<double> clamp, alpha, limit;
  bool fast_math = true;
};
void add_activation(CLI::App& verb, ActivationArguments& to);
/// `suggested` with what the command line says; throws for values out of their bounds.
Activation activation_of(const ActivationArguments& arguments, const Activation& suggested);

/// Blackwell's kernels on a Hopper card: results, and no times.
inline constexpr std::string_view kEmulatedMachine = "sm100-emulated";

/// By what the flag says: auto may be one, and is not named.
inline bool is_named_gpu(std::string_view machine) {
  return machine != "auto" && machine != "cpu";
}

/// How to run it.
struct RunArguments {
  std::optional<int> ranks;
  std::optional<std::int64_t> capacity;
  std::string launch = "threads";
  LayerOptions layer;  ///< all that it has

  /// Whether a launcher started this process as one of the ranks.
  bool is_rank() const { return launch == "environment"; }
  bool in_processes() const { return launch != "threads"; }
  bool is_emulated() const { return layer.machine == kEmulatedMachine; }
};
void add_machine(CLI::App& verb, RunArguments& to);
void add_run(CLI::App& verb, RunArguments& to);

/// A problem by shape: a model's name, or H,I,E,K.
struct ShapeArguments {
  std::string shape;
  std::optional<int> experts;
};
void add_shape(CLI::App& verb, ShapeArguments& to);

struct LayerShape {
  int hidden = 0, intermediate = 0, experts = 0, topk = 0;
};
LayerShape layer_shape(const ShapeArguments& arguments);

/// A file that a flag names.
struct FileFlag {
  std::string flag, path;
};
/// Refuses to write over a file that the same command reads or writes.
void require_other_file(const FileFlag& written, const FileFlag& other);

}  // namespace megamoe::cli
