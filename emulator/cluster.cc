// The scheduler of one cluster: which lanes run next, when asynchronous work runs, and what it means if
// nothing can.
#include <fmt/format.h>

#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

constexpr uint32_t kQuantum = 4000;
constexpr uint32_t kNoStop = UINT32_MAX;

bool wakes(const Fragment& f) {
  switch (f.state) {
    case Fragment::State::ready:
      return true;
    case Fragment::State::waiting:
    case Fragment::State::converging:
      return *f.counter != f.seen;
    case Fragment::State::unused:
      return false;
  }
  return false;
}

bool same_stack(const Fragment& a, const Fragment& b) {
  if (a.stack.size() != b.stack.size()) return false;
  for (size_t i = 0; i < a.stack.size(); ++i)
    if (a.stack[i].return_pc != b.stack[i].return_pc) return false;
  return true;
}

/// Lanes that stand at the same instruction become one fragment.
void merge(Warp& w) {
  for (uint32_t i = w.used; i; i &= i - 1) {
    Fragment& a = w.fragments[std::countr_zero(i)];
    if (a.state == Fragment::State::waiting || a.step) continue;
    for (uint32_t j = i & (i - 1); j; j &= j - 1) {
      int index = std::countr_zero(j);
      Fragment& b = w.fragments[index];
      if (b.state == Fragment::State::waiting || b.state == Fragment::State::unused || b.step || b.pc != a.pc)
        continue;
      if (a.state == Fragment::State::unused || !same_stack(a, b)) continue;
      a.mask |= b.mask;
      a.state = Fragment::State::ready;
      a.turns = std::min(a.turns, b.turns);
      b.state = Fragment::State::unused;
      w.used &= ~(1u << index);
      ++w.version;
    }
  }
}

Fragment* choose(Warp& w, std::mt19937_64* random) {
  if (std::has_single_bit(w.used)) {
    Fragment& f = w.fragments[std::countr_zero(w.used)];
    return wakes(f) ? &f : nullptr;
  }
  merge(w);
  Fragment* best = nullptr;
  uint32_t seen = 0;
  for (uint32_t i = w.used; i; i &= i - 1) {
    Fragment& f = w.fragments[std::countr_zero(i)];
    if (!wakes(f)) continue;
    ++seen;
    if (!best || (random ? (*random)() % seen == 0
                         : f.turns < best->turns || (f.turns == best->turns && f.pc < best->pc)))
      best = &f;
  }
  return best;
}

/// The nearest instruction ahead at which other lanes stand.
uint32_t stop_pc(const Warp& w, const Fragment& f) {
  uint32_t stop = kNoStop;
  for (uint32_t i = w.used; i; i &= i - 1) {
    const Fragment& other = w.fragments[std::countr_zero(i)];
    if (&other != &f && other.pc > f.pc && other.pc < stop) stop = other.pc;
  }
  return stop;
}

/// A register of a tcgen05.ld or wgmma in flight is used before the wait. ptxas and the hardware honour the
/// true dependence (ptx-facts 1.6), so the operation runs first; relying on it is reported, except for plain
/// moves, which the compiler puts between chained inline-assembly operands.
void check_pending_registers(Warp& w, const Instr& in) {
  bool loads = false, multiplies = false;
  if (in.mod[4] == kWgmmaMark) return;  // chained accumulation
  for (uint16_t i = 0; i < in.op_count; ++i) {
    const Operand& op = in.ops[i];
    if (op.kind != Operand::Kind::reg) continue;
    if (op.offset / 64 < w.pending_index.size() && w.pending_index[op.offset / 64]) {
      const PendingRegisters& p = w.pending_registers[w.pending_index[op.offset / 64] - 1];
      if (p.is_tcgen05 ? loads : multiplies) continue;
      (p.is_tcgen05 ? loads : multiplies) = true;
      const Program& program = *w.cta->cluster->launch->program;
      if (in.form < program.forms.size() && program.forms[in.form].rfind("mov", 0) == 0) continue;
      report_here(w, Severity::warning, p.is_tcgen05 ? Check::tmem : Check::wgmma,
                  fmt::format("uses a register that the {} at line {} may still write: {} is missing",
                              p.is_tcgen05 ? "tcgen05.ld" : "wgmma", p.line,
                              p.is_tcgen05 ? "tcgen05.wait::ld" : "wgmma.wait_group"));
    }
  }
  if (loads) {
    w.cta->cluster->async.drain(&w.tmem_loads);
    finish_tmem_loads(w);
  }
  if (multiplies) w.cta->cluster->async.drain(&w.wgmma_queue);
}

/// False if there was nothing to run.
bool run_warp(Cluster& cluster, Warp& w, uint32_t quantum, std::mt19937_64* random) {
  Fragment* f = choose(w, random);
  if (!f) return false;
  f->state = Fragment::State::ready;
  const Instr* code = cluster.launch->program->code.data();
  uint32_t stop = std::has_single_bit(w.used) ? kNoStop : stop_pc(w, *f);
  for (uint32_t n = 0; n < quantum; ++n) {
    const Instr& in = code[f->pc];
    Mask mask = f->mask;
    if (in.guard != Instr::kNoGuard) {
      Mask p;
      std::memcpy(&p, w.registers.get() + in.guard, 4);
      mask &= in.guard_negated ? ~p : p;
    }
    cluster.executed[f->pc] += mask != 0;  // switched off is not executed
    ++cluster.instructions;
    w.current = &in;
    Action action = Action::next;
    if (mask) {
      if (!w.pending_registers.empty()) check_pending_registers(w, in);
      action = in.run(w, *f, in, mask);
    }
    switch (action) {
      case Action::next:
        ++f->pc;
        break;
      case Action::yield:
        ++f->pc;
        return true;
      case Action::wait:
        --cluster.executed[f->pc];
        if (f->state != Fragment::State::converging)
          f->state = Fragment::State::waiting;
        else if (!std::has_single_bit(w.used))
          merge(w);
        // Woken for nothing: other lanes of the warp get their chance.
        return n > 0 || run_warp(cluster, w, quantum, random);
      case Action::jump:
        if (cluster.failed) return true;
        if (f->state != Fragment::State::ready) return true;
        stop = std::has_single_bit(w.used) ? kNoStop : stop_pc(w, *f);
        // A lower fragment goes first, so that lanes meet again.
        if (stop != kNoStop || !std::has_single_bit(w.used)) {
          bool behind = false;
          for (uint32_t i = w.used; i; i &= i - 1) {
            const Fragment& other = w.fragments[std::countr_zero(i)];
            if (&other != f && wakes(other) && other.pc <= f->pc && other.turns <= f->turns) behind = true;
          }
          if (behind) return true;
        }
        break;
    }
    if (f->pc == stop) return true;
  }
  ++f->turns;
  return true;
}

std::string progress_of(const Warp& w, const Fragment& f) {
  const Program& program = *w.cta->cluster->launch->program;
  const Instr& in = program.code[f.pc];
  std::string text = fmt::format("CTA ({},{},{}) rank {}, warp {}, lanes {:#010x}, line {}: ", w.cta->ctaid.x,
                                 w.cta->ctaid.y, w.cta->ctaid.z, w.cta->rank, w.index, f.mask, in.line);
  if (f.state != Fragment::State::ready && f.describe_wait) return text + f.describe_wait();
  auto it = program.line_text.find(in.line);
  return text + "at '" + (it == program.line_text.end() ? "" : it->second) + "'";
}

}  // namespace

void Cluster::report(Severity severity, Check check, const Cta* cta, int warp, int line,
                     const std::string& message) {
  auto [it, fresh] = finding_index.try_emplace(
      {static_cast<int>(check) * 4 + static_cast<int>(severity), line}, findings.size());
  if (!fresh) {
    ++findings[it->second].count;
    return;
  }
  Diagnosis d;
  d.severity = severity;
  d.check = check;
  d.kernel = launch->function->name;
  if (cta) d.cta = cta->ctaid;
  d.warp = warp;
  d.line = line;
  if (auto text = launch->program->line_text.find(line); text != launch->program->line_text.end())
    d.instruction = text->second;
  d.message = message;
  findings.push_back(std::move(d));
}

void Cluster::deadlock_report() {
  std::string text = "no thread can go on:";
  const Cta* first = nullptr;
  int first_warp = -1, first_line = 0;
  for (const auto& cta : ctas)
    for (const auto& w : cta->warps)
      for (uint32_t i = w->used; i; i &= i - 1) {
        const Fragment& f = w->fragments[std::countr_zero(i)];
        if (!first) first = cta.get(), first_warp = w->index, first_line = launch->program->code[f.pc].line;
        text += "\n    " + progress_of(*w, f);
      }
  fail(Check::deadlock, first, first_warp, first_line, text);
}

Cluster::Status Cluster::step(uint64_t budget) {
  bool is_random = launch->config.schedule.policy == SchedulePolicy::random;
  uint64_t limit = instructions + budget;
  std::vector<Warp*> warps;
  for (const auto& cta : ctas)
    for (const auto& w : cta->warps) warps.push_back(w.get());
  const Cta* at_cta = nullptr;
  int at_warp = -1, at_line = 0;
  try {
    while (!failed) {
      bool progress = false, alive = false;
      uint64_t events_before = events;
      size_t start = is_random ? random() % warps.size() : 0;
      for (size_t i = 0; i < warps.size() && !failed && !pause; ++i) {
        Warp& w = *warps[(start + i) % warps.size()];
        if (!w.used) continue;
        alive = true;
        at_cta = w.cta;
        at_warp = w.index;
        uint32_t quantum = is_random ? 1 + static_cast<uint32_t>(random() % 64) : kQuantum;
        w.current = nullptr;
        try {
          progress |= run_warp(*this, w, quantum, is_random ? &random : nullptr);
        } catch (const Fault&) {
          at_line = w.current ? w.current->line : 0;
          throw;
        }
        if (is_random && random() % 3 == 0 && async.run_random(random)) progress = true;
      }
      if (failed) break;
      if (pause) {
        pause = false;
        return Status::progress;
      }
      if (!alive) {
        while (async.run_oldest()) {
        }
        return Status::finished;
      }
      if (events != events_before) {
        last_event_instructions = instructions;
      } else if (async.run_oldest()) {
        // Either nobody can go on, or all that run only look and change nothing.
        last_event_instructions = instructions;
        ++events;
        continue;
      } else if (!progress) {
        if (launch->prerequisite_pending) return Status::blocked;
        deadlock_report();
        break;
      }
      if (instructions - last_event_instructions > launch->config.livelock_instructions) {
        fail(Check::livelock, at_cta, at_warp, 0,
             fmt::format(
                 "{} warp instructions without any effect: threads spin on something that never changes",
                 launch->config.livelock_instructions));
        break;
      }
      if (launch->config.instruction_limit && instructions > launch->config.instruction_limit) {
        fail(Check::livelock, at_cta, at_warp, 0,
             fmt::format("the limit of {} warp instructions a cluster is reached",
                         launch->config.instruction_limit));
        break;
      }
      if (instructions >= limit) return Status::progress;
    }
  } catch (const Fault& fault) {
    if (const AsyncEngine::Task* task = async.running())
      fail(fault.check, task->cta, task->warp, task->line, fault.what());
    else
      fail(fault.check, at_cta, at_warp, at_line, fault.what());
  }
  return Status::finished;
}

}  // namespace gemmtune::emulator
