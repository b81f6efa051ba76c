// gemmtune db info | check
#include <fmt/format.h>

#include <memory>

#include "db/check.h"
#include "tool/command.h"
#include "tool/options.h"

namespace gemmtune {
namespace {

int info(const CommonOptions& o) {
  Store store(o.db, OpenMode::read_only);
  DatabaseInfo i = database_info(store);
  fmt::print("{}: {:.1f} MiB, schema version {}, SQLite {}\n", i.path, double(i.file_bytes) / (1 << 20),
             i.schema_version, i.sqlite_version);
  fmt::print("{} problems, {} devices, {} configs, {} kernels ({:.1f} MiB of cubins)\n", i.problems,
             i.devices, i.configs, i.kernels, double(i.cubin_bytes) / (1 << 20));
  fmt::print("{} trials with {} samples, {} winners ({} due), {} sweeps ({} unfinished)\n", i.trials,
             i.samples, i.winners, i.winners_due, i.sweeps, i.unfinished_sweeps);
  for (const auto& [outcome, count] : i.outcomes) fmt::print("  {:<16} {}\n", name(outcome), count);
  for (int64_t id : store.device_ids()) {
    DeviceRecord d = store.device(id);
    fmt::print("device {} ({}), {} SMs, driver {}\n", d.name, d.arch, d.sm_count,
               d.driver_version.empty() ? "none" : d.driver_version);
  }
  for (const Toolchain& t : i.toolchains) fmt::print("compiled with {} {}\n", t.compiler, t.version);
  if (!i.first_trial_at.empty()) fmt::print("trials from {} to {}\n", i.first_trial_at, i.last_trial_at);
  return kDone;
}

int check_file(const CommonOptions& o) {
  Store store(o.db, OpenMode::read_only);
  std::vector<std::string> findings = check_integrity(store);
  for (const std::string& finding : findings) fmt::print("{}\n", finding);
  if (findings.empty()) fmt::print("{}: sound\n", o.db);
  return findings.empty() ? kDone : kEnvironmentFailed;
}

}  // namespace

void declare_db(CLI::App& app, int& status) {
  app.require_subcommand(1);
  auto add = [&](const char* name, const char* help, int (*action)(const CommonOptions&)) {
    CLI::App* sub = app.add_subcommand(name, help);
    sub->footer(fmt::format("Example:\n  gemmtune db {} --db gemmtune.db", name));
    auto o = std::make_shared<CommonOptions>();
    add_db_option(*sub, *o);
    sub->callback([o, action, &status] { status = action(*o); });
  };
  add("info", "sizes, outcomes, devices, compilers", info);
  add("check", "verify that the file and what it says are sound", check_file);
}

}  // namespace gemmtune
