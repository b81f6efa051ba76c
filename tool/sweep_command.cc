// gemmtune sweep
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "db/queries.h"
#include "gemm/error.h"
#include "gpu/compile_pool.h"
#include "search/roofline.h"
#include "tool/command.h"
#include "tool/db_journal.h"
#include "tool/executor_for.h"
#include "tool/options.h"
#include "tool/output.h"
#include "tool/progress.h"
#include "tool/winner_table.h"

namespace gemmtune {
namespace {

std::atomic<bool> g_stop{false};

/// The first Ctrl-C ends the sweep between two steps; a second one ends the process at once. Both keep what
/// is stored.
void stop_on_signal(int) {
  if (g_stop.exchange(true)) ::_exit(kInterrupted);
  // On a terminal the live line gives way.
  std::string_view text = "\r\033[2Kstopping after the step at hand; once more ends at once\n";
  if (!::isatty(STDERR_FILENO)) text.remove_prefix(5);
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

struct SweepArguments {
  CommonOptions common;
  std::string strategy = "ranked", regime = "burst", time;
  int trials = 32, jobs = 0;
  int64_t seed = 1, search_seed = -1;
  bool warm = false;
};

/// What a sweep without a GPU can say of each shape: space, static evidence, proofs, roofline. No times.
std::string static_table(const SweepOptions& o, const Target& where, Store& store, int64_t device_id,
                         Format format) {
  const DeviceSpec& rates = rates_for(where);
  Table table({{"m", "M"},
               {"n", "N"},
               {"k", "K"},
               {"name", "name", true},
               {"legal_configs", "legal configs"},
               {"tried", "tried"},
               where.emulated ? Column{"validated", "validated"} : Column{"compiled", "compiled"},
               {"rejected_static", "rejected"},
               {"failed", "failed"},
               {"min_registers", "registers"},
               {"max_registers", "to"},
               {"roofline_us", "roofline us"},
               {"bound_by", "bound by", true}});
  for (const ListedShape& listed : o.shapes) {
    Problem problem{o.cls, listed.shape};
    int64_t legal = Space(*o.family, *o.arch, o.cls, listed.shape, o.restrictions).count();
    TrialFilter filter;
    filter.problem = problem;
    filter.device_id = device_id;
    filter.arch = std::string(o.arch->name);
    std::map<Outcome, int> counts;
    int tried = 0, low = 0, high = 0;
    for (const StoredTrial& stored : store.trials(filter)) {
      ++tried;
      ++counts[stored.trial.outcome];
      std::optional<CompiledKernel> kernel = store.find_kernel(stored.trial.kernel_key);
      if (!kernel || !kernel->ok) continue;
      int registers = kernel->evidence.registers;
      low = low == 0 ? registers : std::min(low, registers);
      high = std::max(high, registers);
    }
    Roofline bound = roofline(problem, rates);
    int good = counts[where.emulated ? Outcome::ok : Outcome::compiled];
    int rejected = counts[Outcome::rejected_static];
    table.add({listed.shape.m, listed.shape.n, listed.shape.k, listed.name, legal, tried, good, rejected,
               tried - good - rejected, low > 0 ? Cell(low) : Cell(), high > 0 ? Cell(high) : Cell(),
               Cell::real(bound.bound_us(), 2), bound.bound_by()});
  }
  return table.render(format);
}

void print_summary(const SweepSummary& s, size_t workers) {
  std::vector<std::string> parts;
  for (const auto& [outcome, count] : s.outcomes)
    if (count > 0) parts.push_back(fmt::format("{} {}", count, name(outcome)));
  if (!parts.empty())
    tell("outcomes: {}{}\n", fmt::join(parts, ", "),
         s.trials_resumed ? fmt::format(" ({} of them from an earlier run)", s.trials_resumed) : "");
  std::vector<double> ms = s.compile_ms;
  std::ranges::sort(ms);
  if (!ms.empty())
    tell("compiled {} kernel{}: median {:.0f} ms, slowest {:.0f} ms each on one core ({} worker{})\n",
         ms.size(), ms.size() == 1 ? "" : "s", ms[ms.size() / 2], ms.back(), workers,
         workers == 1 ? "" : "s");
  for (const std::string& text : s.skipped) tell("skipped {}\n", text);
  for (const auto& [mark, count] : s.marked)
    tell("{} sample{} {}: stored, not counted, taken again\n", count, count == 1 ? " was" : "s were",
         name(mark));
  for (const std::string& text : s.disturbed)
    tell("{}: given up, every sample was disturbed; the same command goes on from here\n", text);
}

/// Where the wall time went: the GPU is to wait for nobody.
void print_wall_time(const WallTime& w) {
  double busy = w.validate_s + w.time_s;
  if (busy <= 0) return;
  auto share = [&](double s) { return 100 * s / w.total_s; };
  tell(
      "GPU validating or timing {:.0f} % of {:.1f} s: validating {:.0f} %, timing {:.0f} %; operands and "
      "references "
      "{:.0f} %, loading {:.0f} %, waiting for the compiler {:.0f} %\n",
      share(busy), w.total_s, share(w.validate_s), share(w.time_s), share(w.operands_s), share(w.load_s),
      share(w.compiler_s));
}

int run(const SweepArguments& a, const std::string& command_line) {
  Target where = target(a.common);
  Format format = parse_format(a.common.format);
  SweepOptions o;
  o.arch = where.arch;
  o.family = &family_for(*where.arch);
  o.cls = problem_class(a.common);
  o.shapes = listed_shapes(a.common, true);
  o.restrictions = restrictions(a.common, *o.family);
  o.strategy = &find_strategy(a.strategy);
  o.regime = parse_regime(a.regime);
  o.warm_l2 = a.warm;
  if (a.trials < 1 || a.trials > 1000000) throw UsageError("--trials: a number from 1 to 1000000");
  const int jobs = worker_count(a.jobs);
  o.trials = a.trials;
  if (!a.time.empty()) o.time_budget = parse_duration(a.time);
  if (a.seed < 0) throw UsageError("--seed: a number from 0");
  if (a.search_seed < -1) throw UsageError("--search-seed: a number from 0");
  o.seed = static_cast<uint64_t>(a.seed);
  o.search_seed = a.search_seed < 0 ? o.seed : static_cast<uint64_t>(a.search_seed);
  o.alpha = static_cast<float>(a.common.alpha);
  o.beta = static_cast<float>(a.common.beta);

  CompilePool compiler(jobs);  // first: without NVRTC no database is made
  Store store(a.common.db);
  std::unique_ptr<Executor> executor = executor_for(where);

  DeviceRecord device;
  if (executor) {
    device = executor->device();
  } else {
    device.name = "none";
    device.arch = where.arch->name;
  }
  int64_t sweep = store.start_sweep(command_line, o.seed, GEMMTUNE_VERSION);
  DbJournal journal(store, device, sweep);

  struct sigaction action {};
  action.sa_handler = stop_on_signal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  SweepSummary summary;
  {
    Progress progress(where.gpu        ? Progress::Ends::timed
                      : where.emulated ? Progress::Ends::validated
                                       : Progress::Ends::compiled);
    summary = run_sweep(o, compiler, executor.get(), journal, progress, g_stop);
  }
  print_summary(summary, static_cast<size_t>(jobs));
  if (where.gpu) print_wall_time(summary.wall);
  if (summary.interrupted) {
    tell("interrupted: what was measured is in {}; the same command resumes\n", a.common.db);
    return kInterrupted;
  }
  if (summary.out_of_time) {
    tell("the time of {} is used up; the same command goes on from here\n", a.time);
  } else {
    store.finish_sweep(sweep);
  }
  if (where.gpu) {
    std::vector<Problem> problems;
    for (const ListedShape& listed : o.shapes) problems.push_back({o.cls, listed.shape});
    fmt::print("{}", winner_table(store, problems, o.shapes, device.uuid, o.timing(o.regime),
                                  rates_for(where), 1, format));
    bool all_won = summary.without_winner.empty() && summary.skipped.empty() && !summary.out_of_time;
    return all_won ? kDone : kNoWinner;
  }
  fmt::print("{}", static_table(o, where, store, store.device_id(device), format));
  if (where.emulated) {
    tell(
        "validated by the emulator ({}): {} kernels run on the CPU on proxy shapes, exact or within their "
        "bound, so no times and no winners; rooflines are {}'s published rates\n",
        where.no_gpu_reason, where.arch->name, rates_for(where).name);
  } else {
    tell(
        "static evidence only ({}): kernels compiled for {} and checked, none run, so no times and no "
        "winners; rooflines are {}'s published rates\n",
        where.no_gpu_reason, where.arch->name, rates_for(where).name);
  }
  bool all_good = summary.skipped.empty() && !summary.out_of_time;
  Outcome good = where.emulated ? Outcome::ok : Outcome::compiled;
  for (const auto& [outcome, count] : summary.outcomes)
    if (outcome != good && outcome != Outcome::rejected_static && count > 0) all_good = false;
  return all_good ? kDone : kNoWinner;
}

}  // namespace

void declare_sweep(CLI::App& app, int& status) {
  auto a = std::make_shared<SweepArguments>();
  add_shape_options(app, a->common);
  add_arch_option(app, a->common);
  add_device_option(app, a->common);
  add_type_options(app, a->common);
  add_scaling_options(app, a->common);
  add_set_option(app, a->common);
  app.add_option("--strategy", a->strategy, "ranked, random, exhaustive (default ranked)")->type_name("NAME");
  app.add_option("--trials", a->trials, "variants to try for each shape (default 32)")->type_name("N");
  app.add_option("--time", a->time, "stop the whole sweep after: 90s, 10m, 2h")->type_name("TIME");
  app.add_option("--regime", a->regime, "burst; sustained: finalists under lasting load too (default burst)")
      ->type_name("NAME");
  app.add_flag("--warm", a->warm, "time with operands that L2 holds; kept apart from cold times");
  app.add_option("--jobs", a->jobs, "compile workers (default: all cores)")->type_name("N");
  app.add_option("--seed", a->seed, "of every random choice (default 1)")->type_name("N");
  app.add_option("--search-seed", a->search_seed, "of the candidates alone (default: --seed)")
      ->type_name("N");
  add_db_option(app, a->common);
  add_format_option(app, a->common);
  app.callback([a, &status, &app] {
    std::string command_line = "gemmtune sweep";
    for (const CLI::Option* option : app.get_options())
      for (const std::string& value : option->results())
        command_line +=
            " --" + option->get_single_name() + (option->get_expected_max() == 0 ? "" : " " + value);
    status = run(*a, command_line);
  });
}

}  // namespace gemmtune
