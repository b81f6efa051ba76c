#include "tool/progress.h"

#include <fmt/format.h>

namespace gemmtune {
namespace {

std::string first_line(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  return line.size() > 200 ? line.substr(0, 197) + "..." : line;
}

}  // namespace

std::string shape_text(const ListedShape& shape) {
  return shape.name.empty() ? to_string(shape.shape)
                            : fmt::format("{} ({})", to_string(shape.shape), shape.name);
}

std::string Progress::left() const {
  if (index_ == 0) return "";
  auto spent = std::chrono::steady_clock::now() - started_;
  auto left = std::chrono::duration_cast<std::chrono::seconds>(spent * (count_ - index_) / index_).count();
  return left < 120 ? fmt::format(", about {} s left", left) : fmt::format(", about {} min left", left / 60);
}

void Progress::planned(size_t trials, size_t kernels, size_t cached) {
  line_.say(
      fmt::format("{} trials, {} distinct kernels, {} of them compiled before", trials, kernels, cached));
}

void Progress::compiling(size_t done, size_t total) {
  compiled_ = done;
  to_compile_ = total;
  line_.show(
      fmt::format("[{}/{}] {}: kernels compiled {}/{}{}", index_ + 1, count_, shape_, done, total, left()));
}

void Progress::problem_started(size_t index, size_t count, const ListedShape& shape, size_t candidates) {
  index_ = index;
  count_ = count;
  candidates_ = candidates;
  trials_ = 0;
  outcomes_.clear();
  shape_ = to_string(shape.shape);
}

void Progress::device_busy(const std::string& holder) {
  line_.say(fmt::format("{}: the GPU is in use by another gemmtune ({}); waiting, compilation goes on",
                        shape_, holder));
}

void Progress::trial_finished(const Trial& trial) {
  ++trials_;
  ++outcomes_[trial.outcome];
  bool expected = trial.outcome == Outcome::ok || trial.outcome == Outcome::compiled ||
                  trial.outcome == Outcome::rejected_static;
  if (!expected)
    line_.say(fmt::format("{} {} {}: {}", to_string(trial.problem.shape), name(trial.outcome), trial.config,
                          first_line(trial.message)));
  line_.show(
      fmt::format("[{}/{}] {}: trial {}/{}{}", index_ + 1, count_, shape_, trials_, candidates_, left()));
}

void Progress::measuring(size_t samples_done, bool final_rounds) {
  line_.show(fmt::format("[{}/{}] {}: {} sample {}{}", index_ + 1, count_, shape_,
                         final_rounds ? "final" : "screening", samples_done, left()));
}

void Progress::disturbed(SampleMark mark) {
  if (!told_.insert(mark).second) return;
  line_.say(
      mark == SampleMark::contended
          ? "another process computes on this GPU: samples taken meanwhile do not count and are repeated"
          : "the GPU holds its clock down for heat or power brake: such samples do not count and are "
            "repeated");
}

void Progress::problem_finished(const ListedShape& shape, std::optional<double> winner_us, size_t ok,
                                size_t candidates) {
  std::string what = winner_us ? fmt::format("{:.2f} us, {} of {} variants ok", *winner_us, ok, candidates)
                               : fmt::format("{} variants", candidates);
  if (ends_ == Ends::timed) {
    if (!winner_us) what += fmt::format(", {} validated, no winner", ok);
  } else {
    if (outcomes_.empty()) what += ", nothing new";
    for (const auto& [outcome, count] : outcomes_)
      what += fmt::format(", {} {}", count, outcome == Outcome::ok ? "validated" : name(outcome));
    if (trials_ > 0 && trials_ < candidates) what += " now";
  }
  ++index_;
  line_.say(fmt::format("[{}/{}] {}: {}{}", index_, count_, shape_text(shape), what,
                        index_ < count_ ? left() : ""));
  --index_;
}

}  // namespace gemmtune
