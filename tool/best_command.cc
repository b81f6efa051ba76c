// gemmtune best
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "db/queries.h"
#include "db/winners.h"
#include "gemm/error.h"
#include "tool/command.h"
#include "tool/db_journal.h"
#include "tool/options.h"
#include "tool/output.h"
#include "tool/winner_table.h"

namespace gemmtune {
namespace {

struct BestArguments {
  CommonOptions common;
  std::string regime = "burst", gpu;
  int top = 1;
  bool any_class = true, warm = false;
};

int run(const BestArguments& a) {
  if (a.top < 1 || a.top > 1000) throw UsageError("--top: a number from 1 to 1000");
  Format format = parse_format(a.common.format);
  BestFilter filter;
  filter.timing.regime = parse_regime(a.regime);
  filter.timing.warm_l2 = a.warm;
  filter.top = a.top;
  if (!a.common.arch.empty()) filter.arch = std::string(find_arch(a.common.arch).name);
  if (!a.gpu.empty()) filter.device_name = a.gpu;
  std::vector<ListedShape> shapes = listed_shapes(a.common, false);
  if (!a.any_class || !shapes.empty()) {
    ProblemClass cls = problem_class(a.common);
    if (shapes.empty()) filter.cls = cls;
    for (const ListedShape& listed : shapes) filter.problems.push_back({cls, listed.shape});
  }
  Store store(a.common.db, OpenMode::read_only);
  std::vector<BestAnswer> answers = best(store, filter);
  if (answers.empty()) {
    tell("{} holds no trial that matches: run gemmtune sweep first\n", a.common.db);
    return kNoWinner;
  }
  fmt::print("{}", answers_table(answers, shapes, nullptr).render(format));
  bool due = std::ranges::any_of(answers, &BestAnswer::due);
  if (due) tell("some winners are older than their trials: an interrupted sweep; run it again\n");
  bool complete =
      std::ranges::all_of(answers, [](const BestAnswer& answer) { return answer.winner.has_value(); });
  if (!complete) tell("some shapes have no valid winner\n");
  return complete ? kDone : kNoWinner;
}

}  // namespace

void declare_best(CLI::App& app, int& status) {
  auto a = std::make_shared<BestArguments>();
  add_shape_options(app, a->common);
  app.add_option("--top", a->top, "runners-up to show, the winner included (default 1)")->type_name("N");
  add_arch_option(app, a->common);
  app.add_option("--gpu", a->gpu, "only this device, by name: \"NVIDIA H200\"")->type_name("NAME");
  app.add_option("--regime", a->regime, "burst, sustained (default burst)")->type_name("NAME");
  app.add_flag("--warm", a->warm, "times with operands that L2 holds (default: cold)");
  add_type_options(app, a->common);
  app.add_option("--beta", a->common.beta, "0 or not: which problem class (default 0)")->type_name("X");
  add_db_option(app, a->common);
  add_format_option(app, a->common);
  app.callback([a, &status, &app] {
    a->any_class = !names_class(app);
    status = run(*a);
  });
}

}  // namespace gemmtune
