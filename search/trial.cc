#include "search/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "gemm/error.h"
#include "gemm/suggest.h"

namespace gemmtune {

std::string_view name(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok:
      return "ok";
    case Outcome::compiled:
      return "compiled";
    case Outcome::compile_failed:
      return "compile_failed";
    case Outcome::rejected_static:
      return "rejected_static";
    case Outcome::launch_failed:
      return "launch_failed";
    case Outcome::wrong_result:
      return "wrong_result";
    case Outcome::timed_out:
      return "timed_out";
    case Outcome::crashed:
      return "crashed";
    case Outcome::unstable:
      return "unstable";
  }
  return "?";
}

std::optional<Outcome> parse_outcome(std::string_view text) {
  for (Outcome outcome : kAllOutcomes)
    if (name(outcome) == text) return outcome;
  return std::nullopt;
}

std::string_view name(ValidatedBy by) {
  switch (by) {
    case ValidatedBy::none:
      return "none";
    case ValidatedBy::gpu:
      return "gpu";
    case ValidatedBy::emulator:
      return "emulator";
  }
  return "?";
}

std::string_view name(Regime regime) { return regime == Regime::burst ? "burst" : "sustained"; }

Regime parse_regime(std::string_view text) {
  if (text == "burst") return Regime::burst;
  if (text == "sustained") return Regime::sustained;
  const std::vector<std::string> known = {"burst", "sustained"};
  throw UsageError(fmt::format("unknown regime '{}'{}: burst or sustained", text, did_you_mean(text, known)));
}

std::string_view name(SampleMark mark) {
  switch (mark) {
    case SampleMark::none:
      return "";
    case SampleMark::throttled:
      return "throttled";
    case SampleMark::contended:
      return "contended";
  }
  return "?";
}

SampleMark parse_sample_mark(std::string_view text) {
  for (SampleMark mark : {SampleMark::throttled, SampleMark::contended})
    if (name(mark) == text) return mark;
  return SampleMark::none;
}

bool Validation::passed() const {
  return by != ValidatedBy::none && !cases.empty() &&
         std::ranges::all_of(cases, [](const ValidationCase& c) { return c.passed(); });
}

namespace {

/// Linear interpolation between order statistics; `sorted` is not empty.
double quantile(const std::vector<double>& sorted, double q) {
  double at = q * double(sorted.size() - 1);
  size_t low = static_cast<size_t>(at);
  size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - double(low)) * (sorted[high] - sorted[low]);
}

}  // namespace

bool Measurement::has_final_rounds() const {
  return std::ranges::any_of(samples,
                             [](const Sample& s) { return s.final_round && s.mark == SampleMark::none; });
}

std::vector<Sample> Measurement::counting_samples() const {
  bool finals = has_final_rounds();
  std::vector<Sample> counting;
  std::ranges::copy_if(samples, std::back_inserter(counting), [&](const Sample& s) {
    return s.final_round == finals && s.mark == SampleMark::none;
  });
  return counting;
}

std::vector<double> Measurement::counting_times_us() const {
  std::vector<double> times;
  for (const Sample& sample : counting_samples()) times.push_back(sample.time_us);
  return times;
}

double Measurement::median_us() const {
  std::vector<double> times = counting_times_us();
  std::ranges::sort(times);
  return times.empty() ? 0 : quantile(times, 0.5);
}

double Measurement::relative_spread() const {
  std::vector<double> times = counting_times_us();
  std::ranges::sort(times);
  if (times.empty()) return 0;
  return (quantile(times, 0.75) - quantile(times, 0.25)) / quantile(times, 0.5);
}

}  // namespace gemmtune
