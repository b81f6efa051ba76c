// The commands: one row each in commands.cc, one file each.
#pragma once

#include <CLI/App.hpp>
#include <span>
#include <string_view>

namespace gemmtune {

/// Exit statuses (docs/commands.md).
inline constexpr int kDone = 0, kEnvironmentFailed = 1, kWrongUsage = 2, kNoWinner = 3, kInterrupted = 130;

struct Command {
  const char* name;
  const char* help;     ///< one line, for the list of commands
  const char* example;  ///< one line or two, at the end of --help
  /// Declares options on the subcommand and sets its callback, which writes the exit status into `status`.
  void (*declare)(CLI::App& app, int& status);
};

std::span<const Command> commands();

void declare_sweep(CLI::App& app, int& status);
void declare_best(CLI::App& app, int& status);
void declare_verify(CLI::App& app, int& status);
void declare_export(CLI::App& app, int& status);
void declare_compare(CLI::App& app, int& status);
void declare_space(CLI::App& app, int& status);
void declare_compile(CLI::App& app, int& status);
void declare_emulate(CLI::App& app, int& status);
void declare_shapes(CLI::App& app, int& status);
void declare_devices(CLI::App& app, int& status);
void declare_db(CLI::App& app, int& status);

/// Parses and runs; never throws. Messages go to stderr, one line.
int run_tool(int argc, char** argv);

}  // namespace gemmtune
