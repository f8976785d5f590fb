#include <cstdio>
#include <exception>
#include <iostream>

#include "cli/verbs.hpp"
#include "megamoe/version.hpp"

namespace megamoe::cli {
namespace {

ExitCode report(const std::string& sentence, ExitCode code) {
  std::cerr << "megamoe: " << sentence << "\n";
  return code;
}

/// The parser library would only say that some verb is missing.
void require_known_verb(const CLI::App& app, const std::string& word) {
  std::string known;
  for (const CLI::App* verb : app.get_subcommands({})) {
    if (verb->get_name() == word) return;
    known += (known.empty() ? "" : ", ") + verb->get_name();
  }
  throw Error(ErrorCode::kInvalidArgument, "there is no verb \"" + word + "\"; there are " + known);
}

ExitCode run(int argc, char** argv) {
  CLI::App app(
      "A mixture-of-experts layer under expert parallelism, as one persistent kernel per rank");
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  Action action;
  add_forward(app, action);
  add_generate(app, action);
  add_plan(app, action);
  add_check(app, action);
  add_bench(app, action);
  add_doctor(app, action);
  if (argc > 1 && argv[1][0] != '-') require_known_verb(app, argv[1]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    app.exit(wanted);
    return kGood;
  } catch (const CLI::Error& error) {
    return report(std::string(error.what()) +
                      "; `megamoe --help` and `megamoe VERB --help` say what there is",
                  kBadInput);
  }
  const ExitCode code = action();
  std::cout.flush();
  if (!std::cout) return report("standard output can't be written", kRunFailed);
  return code;
}

}  // namespace
}  // namespace megamoe::cli

int main(int argc, char** argv) {
  using namespace megamoe;
  try {
    return cli::run(argc, argv);
  } catch (const Error& error) {
    return cli::report(error.what(), cli::exit_code_of(error.code()));
  } catch (const std::exception& error) {
    return cli::report(error.what(), cli::kRunFailed);
  }
}
