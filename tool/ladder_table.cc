#include "tool/ladder_table.h"

#include <fmt/format.h>

#include "tool/output.h"

namespace gemmtune {
namespace {

/// Of a compiled step, in the order of kLadderColumns.
std::vector<int> counts_of(const StaticEvidence& e) {
  const InstructionCounts& c = e.counts;
  return {c.mma, c.tma_load, c.commit, c.mbarrier_wait, c.tmem_load, e.tmem_columns};
}

/// "4 (seed 4)".
Cell beside_original(int count, const LadderCount& want) {
  Cell cell(count);
  if (want.original) cell.text = fmt::format("{} (seed {})", count, *want.original);
  return cell;
}

}  // namespace

Table ladder_table(const KernelFamily& family, const std::vector<LadderStep>& steps,
                   const std::vector<CompiledVariant>& compiled, Format format, bool& all_as_designed) {
  // A program gets the original's count as a number of its own.
  const bool for_people = format == Format::table;
  std::vector<Column> columns = {
      {"step", "step", true},    {"config", "config (knobs off their default)", true},
      {"class", "class", true},  {"registers", "registers"},
      {"spill_bytes", "spills"}, {"smem_bytes", "smem bytes"}};
  for (const LadderColumn& column : kLadderColumns) {
    columns.push_back({column.name, column.name});
    if (!for_people) columns.push_back({fmt::format("{}_seed", column.name), ""});
  }
  columns.push_back({"as_designed", "as designed", true});
  columns.push_back({"remark", "remark", true});
  Table table(columns);
  for (size_t i = 0; i < steps.size(); ++i) {
    const LadderStep& step = steps[i];
    const CompiledVariant& one = compiled[i];
    const StaticEvidence& e = one.evidence;
    const bool ok = one.result.ok;
    bool as_designed = ok && one.rejected.empty() && one.counts_as_designed;
    if (!ok) tell("{}: {}\n", step.name, one.result.log);
    if (!one.rejected.empty()) tell("{}: {}\n", step.name, one.rejected);
    std::vector<Cell> row = {step.name,
                             brief_text(family.knobs(), step.config),
                             to_string(step.cls),
                             ok ? Cell(e.registers) : Cell(),
                             ok ? Cell(e.spill_store_bytes + e.spill_load_bytes) : Cell(),
                             ok ? Cell(e.static_smem_bytes + e.dynamic_smem_bytes) : Cell()};
    const std::vector<int> counts = counts_of(e);
    for (size_t c = 0; c < counts.size(); ++c) {
      const LadderCount& want = step.*kLadderColumns[c].count;
      if (ok && want.ours && *want.ours != counts[c]) {
        as_designed = false;
        tell("{}: {} is {}, the ladder says {}\n", step.name, kLadderColumns[c].name, counts[c], *want.ours);
      }
      row.push_back(ok ? beside_original(counts[c], want) : Cell());
      if (!for_people) row.push_back(want.original ? Cell(*want.original) : Cell());
    }
    row.emplace_back(as_designed ? "yes" : "no");
    row.emplace_back(step.remark);
    table.add(std::move(row));
    all_as_designed = all_as_designed && as_designed;
  }
  return table;
}

}  // namespace gemmtune
