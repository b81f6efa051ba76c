// The command table: dispatch, help and suggestions come from it.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <array>
#include <cstdio>
#include <iostream>

#include "gemm/error.h"
#include "gemm/suggest.h"
#include "tool/command.h"
#include "tool/internal_worker.h"

namespace gemmtune {
namespace {

constexpr std::array<Command, 8> kCommands = {{
    {"sweep", "tune shapes: compile, validate, time and record variants",
     "gemmtune sweep --arch sm_90a --shapes examples/shapes/llama3-70b.csv --trials 32", declare_sweep},
    {"best", "the best configuration for each shape, and how that is known",
     "gemmtune best --shape 4096x4096x4096 --top 3", declare_best},
    {"export", "winners as C++ header, JSON or CSV", "gemmtune export --format header --output winners.h",
     declare_export},
    {"space", "legal configurations of a shape, and why others are rejected",
     "gemmtune space --arch sm_100a --shape 4096x4096x4096 --explain stages=6,tile_n=256", declare_space},
    {"compile", "cross-compile variants without a GPU: registers, spills, shared memory, instruction counts",
     "gemmtune compile --arch sm_100a --set stages=4 --set tile_n=128,256 --dump out/", declare_compile},
    {"shapes", "shape list of a model, from its Hugging Face config.json",
     "gemmtune shapes --hf-config config.json --tokens 1,64,8192 --tp 8 > shapes.csv", declare_shapes},
    {"devices", "GPUs, driver, NVRTC and cuBLASLt found here, and what works with them", "gemmtune devices",
     declare_devices},
    {"db", "inspect and check a database", "gemmtune db info --db gemmtune.db", declare_db},
}};

/// Long options of a command and its parents, for suggestions.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

/// What the user mistyped, with the nearest known name.
std::string describe(const CLI::ParseError& error, const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  for (const CLI::App* sub : app.get_subcommands()) command = sub;
  std::vector<std::string> known = option_names(*command);
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--")) continue;
    std::string name = argument.substr(0, argument.find('='));
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return fmt::format("unknown option '{}'{}; see gemmtune {} --help", name, did_you_mean(name, known),
                       command == &app ? "" : command->get_name());
  }
  return one_line(error.what());
}

void check_command_name(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0].starts_with("-")) return;
  std::vector<std::string> known;
  for (const Command& command : kCommands) {
    if (arguments[0] == command.name) return;
    known.emplace_back(command.name);
  }
  throw UsageError(fmt::format("unknown command '{}'{}: one of {}", arguments[0], did_you_mean(arguments[0], known),
                               fmt::join(known, ", ")));
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

int run_tool(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "internal-worker") return run_internal_worker(arguments);

  int status = kDone;
  CLI::App app("Tunes GEMM kernels for NVIDIA Blackwell and Hopper: generates, compiles, proves, times, remembers.",
               "gemmtune");
  app.set_version_flag("--version", "gemmtune " GEMMTUNE_VERSION);
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(26);
  app.footer("Results go to stdout, messages to stderr. Exit status: 0 done, 1 the environment failed, 2 wrong usage,\n"
             "3 a shape has no valid winner, 130 interrupted (the same command resumes).");
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    sub->footer(fmt::format("Example:\n  {}", command.example));
    command.declare(*sub, status);
  }
  try {
    check_command_name(arguments);
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) std::cout << app.help();
    std::cout.flush();
    if (!std::cout) throw EnvironmentError("cannot write to standard output");
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "gemmtune: {}\n", describe(error, app, arguments));
    return kWrongUsage;
  } catch (const UsageError& error) {
    fmt::print(stderr, "gemmtune: {}\n", one_line(error.what()));
    return kWrongUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gemmtune: {}\n", one_line(error.what()));
    return kEnvironmentFailed;
  }
  return status;
}

}  // namespace gemmtune
