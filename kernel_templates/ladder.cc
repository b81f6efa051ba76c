#include "kernel_templates/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gemm/csv.h"
#include "gemm/error.h"
#include "gemm/suggest.h"
#include "gemm/text_file.h"

namespace gemmtune {
namespace {

/// "4", "5 (seed 3)", "5 (design)" or "".
LadderCount parse_count(std::string_view text, std::string_view column) {
  LadderCount count;
  if (text.empty()) return count;
  auto number = [](std::string_view& rest) {
    int value = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    bool read = error == std::errc() && value >= 0;
    if (read) rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    return read ? std::optional<int>(value) : std::nullopt;
  };
  std::string_view rest = text;
  count.ours = number(rest);
  bool good = count.ours.has_value();
  if (good && rest.empty()) {
    count.original = count.ours;
  } else if (good && rest.starts_with(" (seed ")) {
    rest.remove_prefix(7);
    count.original = number(rest);
    good = count.original && rest == ")";
  } else {
    good = good && rest == " (design)";
  }
  if (!good)
    throw UsageError(fmt::format("{} '{}': expected a count such as 4, '5 (seed 3)' or '5 (design)'", column,
                                 printable(text)));
  return count;
}

struct Reader {
  const KernelFamily& family;
  const ArchSpec& arch;
  std::vector<std::string> header;

  void read_header(const CsvRecord& record) {
    std::vector<std::string> known = {"step", "config", "class", "remark"};
    for (const LadderColumn& column : kLadderColumns) known.emplace_back(column.name);
    for (const std::string& name : record.fields) {
      if (std::ranges::find(known, name) == known.end())
        throw UsageError(fmt::format("unknown column '{}'{}: one of {}", printable(name),
                                     did_you_mean(name, known), fmt::join(known, ", ")));
      if (std::ranges::count(record.fields, name) > 1)
        throw UsageError(fmt::format("column '{}' occurs twice: remove one", name));
    }
    for (std::string_view needed : {"step", "config", "class"})
      if (std::ranges::find(record.fields, needed) == record.fields.end())
        throw UsageError(
            fmt::format("column '{}' is missing: the header needs step, config and class", needed));
    header = record.fields;
  }

  LadderStep read_step(const CsvRecord& record) const {
    if (record.fields.size() != header.size())
      throw UsageError(fmt::format(
          "{} fields where the header has {}: give every column a field, and quote fields with commas",
          record.fields.size(), header.size()));
    LadderStep step;
    step.line = record.line;
    for (size_t i = 0; i < header.size(); ++i) {
      const std::string &name = header[i], &field = record.fields[i];
      if (name == "step") step.name = field;
      if (name == "config") step.config = parse_config(family.knobs(), field == "default" ? "" : field);
      if (name == "class") step.cls = parse_problem_class(field);
      if (name == "remark") step.remark = field;
      for (const LadderColumn& column : kLadderColumns)
        if (name == column.name) step.*column.count = parse_count(field, name);
    }
    const ConstraintScope scope{arch, step.cls, std::nullopt};
    for (const Constraint& constraint : family.constraints())
      if (std::string reason = constraint.violated(step.config, scope); !reason.empty())
        throw UsageError(fmt::format("not legal: {}", reason));
    return step;
  }
};

}  // namespace

std::vector<LadderStep> parse_ladder(std::string_view text, std::string_view file, const KernelFamily& family,
                                     const ArchSpec& arch) {
  CsvReader records(text, file);
  Reader reader{family, arch, {}};
  std::vector<LadderStep> steps;
  while (std::optional<CsvRecord> record = records.next()) {
    try {
      if (reader.header.empty()) {
        reader.read_header(*record);
      } else {
        steps.push_back(reader.read_step(*record));
      }
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}:{}: {}", file, record->line, error.what()));
    }
  }
  if (steps.empty())
    throw UsageError(
        fmt::format("{}:1: no steps: give a header 'step,config,class' and one line a step", file));
  return steps;
}

std::vector<LadderStep> read_ladder(const std::filesystem::path& path, const KernelFamily& family,
                                    const ArchSpec& arch) {
  return parse_ladder(read_text_file(path, "ladder"), printable(path.string(), 200), family, arch);
}

}  // namespace gemmtune
