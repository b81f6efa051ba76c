// The command table: dispatch, help and suggestions come from it.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>
#include <cstdio>
#include <iostream>

#include "gemm/error.h"
#include "gemm/suggest.h"
#include "tool/command.h"
#include "tool/internal_worker.h"
#include "tool/output.h"

namespace gemmtune {
namespace {

constexpr std::array<Command, 11> kCommands = {{
    {"sweep", "tune shapes: compile, validate, time and record variants",
     "gemmtune sweep --arch sm_90a --shapes examples/shapes/llama3-70b.csv --trials 32", declare_sweep},
    {"best", "the best configuration for each shape, and how that is known",
     "gemmtune best --shape 4096x4096x4096 --top 3", declare_best},
    {"verify", "re-validate and re-time stored winners on this machine", "gemmtune verify --db gemmtune.db",
     declare_verify},
    {"export", "winners as C++ header, JSON or CSV", "gemmtune export --format header --output winners.h",
     declare_export},
    {"compare", "winners beside cuBLASLt, and beside each other, in one run",
     "gemmtune compare --db gemmtune.db --shape 4096x4096x4096", declare_compare},
    {"space", "legal configurations of a shape, and why others are rejected",
     "gemmtune space --arch sm_100a --shape 4096x4096x4096 --explain stages=6,tile_n=256", declare_space},
    {"compile", "cross-compile without a GPU: registers, spills, instruction counts",
     "gemmtune compile --arch sm_100a --set stages=4 --set tile_n=128,256 --dump out/", declare_compile},
    {"emulate", "run a variant, or any PTX kernel, on the CPU: result, races, timeline",
     "gemmtune emulate --arch sm_100a --shape 512x512x512 --set cta_group=2 --set cluster_m=2",
     declare_emulate},
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

/// What the user mistyped, with the nearest known name. CLI11's own sentences name the option, not the
/// remedy.
std::string describe(const CLI::ParseError& error, const CLI::App& app,
                     const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  std::string called = "gemmtune";
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    called += " " + command->get_name();
  }
  std::vector<std::string> known = option_names(*command);
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--")) continue;
    std::string name = argument.substr(0, argument.find('='));
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return fmt::format("unknown option '{}'{}; see {} --help", name, did_you_mean(name, known), called);
  }
  std::string text = one_line(error.what());
  std::string option = text.substr(0, text.find(':'));
  if (const std::string start = "Could not convert: "; text.starts_with(start)) {
    size_t equals = std::min(text.find(" = ", start.size()), text.size());
    return fmt::format("{} '{}': expected a number of reasonable size; see {} --help",
                       text.substr(start.size(), equals - start.size()),
                       text.substr(std::min(equals + 3, text.size())), called);
  }
  if (text.find(" missing") != std::string::npos)
    return fmt::format("{} needs a value; see {} --help", option, called);
  if (text.find("At Most 1") != std::string::npos) return fmt::format("{} is given more than once", option);
  if (const std::string start = "The following argument"; text.starts_with(start))
    return fmt::format("unexpected argument '{}'; see {} --help", text.substr(text.rfind(": ") + 2), called);
  return text;
}

/// Commands come first, `db info` too, so a wrong name is the first thing to report.
void check_command_name(const CLI::App& app, std::span<const std::string> arguments,
                        const std::string& parent) {
  std::vector<std::string> known;
  for (const CLI::App* sub : app.get_subcommands({})) known.push_back(sub->get_name());
  if (known.empty()) return;
  if (arguments.empty() && !parent.empty())
    throw UsageError(fmt::format("{} needs a command: one of {}", parent, fmt::join(known, ", ")));
  if (arguments.empty() || arguments[0].starts_with("-")) return;
  const std::string& name = arguments[0];
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw UsageError(fmt::format("unknown command '{}{}'{}: one of {}", parent.empty() ? "" : parent + " ",
                                 name, did_you_mean(name, known), fmt::join(known, ", ")));
  check_command_name(*app.get_subcommand(name), arguments.subspan(1), name);
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

int run_tool(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "internal-worker") return run_internal_worker(arguments);

  prepare_streams();
  int status = kDone;
  auto failed = [](int exit_status, const std::string& text) {
    tell("gemmtune: {}\n", text);
    return exit_status;
  };
  CLI::App app(
      "Tunes GEMM kernels for NVIDIA Blackwell and Hopper: generates, compiles, proves, times, remembers.",
      "gemmtune");
  app.set_version_flag("--version", "gemmtune " GEMMTUNE_VERSION);
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(26);
  app.footer(
      "gemmtune COMMAND --help says more. Results go to stdout, messages to stderr. Exit status: 0 done,\n"
      "1 the environment failed, 2 wrong usage, 3 a shape has no valid winner, 130 interrupted (the\n"
      "same command resumes).");
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    sub->footer(fmt::format("Example:\n  {}", command.example));
    command.declare(*sub, status);
  }
  try {
    check_command_name(app, arguments, "");
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) std::cout << app.help();
  } catch (const CLI::Success& help) {
    status = app.exit(help);
  } catch (const CLI::ParseError& error) {
    return failed(kWrongUsage, describe(error, app, arguments));
  } catch (const UsageError& error) {
    return failed(kWrongUsage, one_line(error.what()));
  } catch (const std::exception& error) {
    // A result that could not be written throws too, without saying where it should have gone.
    if (!std::ferror(stdout)) return failed(kEnvironmentFailed, one_line(error.what()));
  }
  try {
    finish_output();
  } catch (const EnvironmentError& error) {
    return failed(kEnvironmentFailed, error.what());
  }
  return status;
}

}  // namespace gemmtune
