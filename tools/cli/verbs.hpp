#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "megamoe/error.hpp"

namespace megamoe::cli {

/// What the process ends with.
enum ExitCode : int {
  kGood = 0,
  kCheckFailed = 1,
  kBadInput = 2,       ///< the command line, a file, a value
  kNoSuchMachine = 3,  ///< this computer can't do it
  kRunFailed = 4,      ///< a wait expired, a rank died
};

constexpr ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kBadFile: return kBadInput;
    case ErrorCode::kUnsupportedMachine: return kNoSuchMachine;
    case ErrorCode::kRunFailed:
    case ErrorCode::kInternal: return kRunFailed;
  }
  return kRunFailed;
}

/// What a verb does once its arguments are parsed.
using Action = std::function<ExitCode()>;

// Each adds its verb to `app`, sets `action` when the verb is the one that was called.
void add_forward(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);

}  // namespace megamoe::cli
