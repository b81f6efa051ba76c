// gemmtune verify
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "gemm/error.h"
#include "gpu/compile_pool.h"
#include "tool/command.h"
#include "tool/executor_for.h"
#include "tool/geomean.h"
#include "tool/live_line.h"
#include "tool/options.h"
#include "tool/output.h"
#include "tool/verify_winners.h"
#include "tool/winner_table.h"

namespace gemmtune {
namespace {

struct VerifyArguments {
  CommonOptions common;
  std::string regime = "burst";
  int jobs = 0;
  bool any_class = true;
};

Table verdict_table(const std::vector<VerifiedWinner>& rows, const std::vector<ListedShape>& shapes) {
  Table table({{"m", "M"},
               {"n", "N"},
               {"k", "K"},
               {"name", "name", true},
               {"problem_class", "class", true},
               {"verdict", "verdict", true},
               {"stored_us", "stored us"},
               {"now_us", "now us"},
               {"change", "now/stored"},
               {"noise", "noise"},
               {"kernel", "kernel", true},
               {"driver_then", "driver then", true},
               {"driver_now", "driver now", true},
               {"config", "config (knobs off their default)", true},
               {"message", "why", true}});
  for (const VerifiedWinner& row : rows) {
    const Shape& s = row.stored.problem.shape;
    auto listed = std::ranges::find(shapes, s, &ListedShape::shape);
    table.add({s.m, s.n, s.k, listed == shapes.end() ? "" : listed->name, to_string(row.stored.problem.cls),
               name(row.verdict), Cell::real(row.stored.winner->median_us, 2),
               row.now_us ? Cell::real(*row.now_us, 2) : Cell(),
               row.change() ? Cell::real(*row.change(), 3) : Cell(),
               row.now_us ? Cell::share(row.noise) : Cell(), row.compiled_again ? "compiled again" : "cached",
               row.driver_then, row.driver_now, brief_config(row.stored.top.front()),
               row.message.substr(0, row.message.find('\n'))});
  }
  return table;
}

int run(const VerifyArguments& a, const std::string& command_line) {
  Format format = parse_format(a.common.format);
  VerifyOptions o;
  o.regime = parse_regime(a.regime);
  const int jobs = worker_count(a.jobs);
  std::vector<ListedShape> shapes = listed_shapes(a.common, false);
  if (!a.any_class || !shapes.empty()) {
    o.cls = problem_class(a.common);
    for (const ListedShape& listed : shapes) o.problems.push_back({*o.cls, listed.shape});
  }
  Target where = target(a.common);
  if (!where.gpu && !where.emulated)
    throw UsageError("--device none: verify runs kernels; use a GPU or the emulator");
  { Store exists(a.common.db, OpenMode::read_only); }  // never makes one
  Store store(a.common.db);
  CompilePool compiler(jobs);
  std::unique_ptr<Executor> executor = executor_for(where);
  std::vector<BestAnswer> winners = winners_to_verify(store, *executor, o);
  if (winners.empty()) {
    tell("{} holds no winner that {} could verify: run gemmtune sweep first\n", a.common.db,
         where.gpu ? where.gpu->record.name : fmt::format("the emulator of {}", where.arch->name));
    return kNoWinner;
  }
  LiveLine line;
  o.progress = [&](size_t done, size_t count, const Shape& shape) {
    line.show(fmt::format("[{}/{}] {}", done + 1, count, to_string(shape)));
  };
  int64_t sweep = store.start_sweep(command_line, o.seed, GEMMTUNE_VERSION);
  std::vector<VerifiedWinner> rows = verify_winners(store, compiler, *executor, std::move(winners), o, sweep);
  store.finish_sweep(sweep);
  line.clear();
  fmt::print("{}", verdict_table(rows, shapes).render(format));
  size_t holding = static_cast<size_t>(std::ranges::count(rows, Verdict::holds, &VerifiedWinner::verdict));
  Geomean changes;
  for (const VerifiedWinner& row : rows)
    if (row.change()) changes.add(*row.change());
  if (changes.count() > 0) {
    tell("{} of {} winners hold; now/stored {:.3f} in the geometric mean\n", holding, rows.size(),
         changes.value());
  } else {
    tell("{} of {} winners hold{}\n", holding, rows.size(),
         where.emulated ? fmt::format(" ({}): results on proxy shapes only, the emulator takes no times",
                                      where.no_gpu_reason)
                        : "");
  }
  return holding == rows.size() ? kDone : kNoWinner;
}

}  // namespace

void declare_verify(CLI::App& app, int& status) {
  auto a = std::make_shared<VerifyArguments>();
  add_shape_options(app, a->common);
  add_arch_option(app, a->common);
  add_device_option(app, a->common);
  app.add_option("--regime", a->regime, "burst, sustained (default burst)")->type_name("NAME");
  add_type_options(app, a->common);
  app.add_option("--beta", a->common.beta, "0 or not: which problem class (default 0)")->type_name("X");
  app.add_option("--jobs", a->jobs, "compile workers (default: all cores)")->type_name("N");
  add_db_option(app, a->common);
  add_format_option(app, a->common);
  app.callback([a, &status, &app] {
    a->any_class = !names_class(app);
    status = run(*a, "gemmtune verify");
  });
}

}  // namespace gemmtune
