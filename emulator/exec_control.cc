// Branches, calls, exit (PTX ISA 9.7.12), and instructions without effect on results.
#include <fmt/format.h>

#include "emulator/exec.h"

namespace gemmtune::emulator {

/// What is wrong when a CTA ends: TMEM never freed, stores never waited for. Defined with tcgen05 and bulk
/// copies.
void check_tmem_at_exit(Cta& cta);
void check_bulk_at_exit(Warp& w, Mask lanes);

namespace {

/// Splits `lanes` off into a fragment of their own at `pc`.
void split(Warp& w, Fragment& f, Mask lanes, uint32_t pc) {
  f.mask &= ~lanes;
  for (int i = 0; i < 32; ++i) {
    Fragment& fresh = w.fragments[i];
    if (fresh.state != Fragment::State::unused) continue;
    fresh.state = Fragment::State::ready;
    fresh.step = 0;
    fresh.mask = lanes;
    fresh.pc = pc;
    fresh.turns = f.turns;
    fresh.stack = f.stack;
    w.used |= 1u << i;
    ++w.version;
    return;
  }
}

Action branch(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (mask == f.mask) {
    f.pc = in.target;
    return Action::jump;
  }
  split(w, f, mask, in.target);
  ++f.pc;
  return Action::jump;
}

Action branch_indexed(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  const auto& table = *static_cast<const std::vector<uint32_t>*>(in.extra);
  const uint8_t* index = w.read(in.ops[0]);
  Mask rest = mask;
  bool whole = mask == f.mask;
  uint32_t fallthrough = f.pc + 1;
  while (rest) {
    uint32_t i = get<uint32_t>(index, first_lane(rest));
    if (i >= table.size())
      throw Fault(Check::illegal_instruction, fmt::format("brx.idx index {} of {}", i, table.size()));
    Mask same = 0;
    for (Mask m = rest; m; m &= m - 1)
      if (get<uint32_t>(index, first_lane(m)) == i) same |= m & -m;
    rest &= ~same;
    if (!rest && whole) {
      f.pc = table[i];
      return Action::jump;
    }
    split(w, f, same, table[i]);
  }
  f.pc = fallthrough;
  return Action::jump;
}

void decode_bra(Decode& d) {
  d.take("uni");
  d.need_count(1, 1);
  if (d.parsed(0).kind != ParsedOperand::Kind::name) d.fail("expected a label");
  d.out.run = branch;
  d.out.target = d.module.label(d, d.parsed(0).name);
  d.out.mod[5] = kBranchMark;
}

void decode_brx(Decode& d) {
  if (!d.take("idx")) d.fail("only brx.idx is known");
  d.take("uni");
  d.need_count(2, 2);
  d.src(d.parsed(0), 4);
  const auto* targets = d.module.branch_targets(d.function, d.in().scope, d.parsed(1).name);
  if (!targets) d.fail("unknown branch target list");
  auto& table = d.module.program().jump_tables.emplace_back();
  for (std::string_view label : *targets) table.push_back(d.module.label(d, label));
  d.out.extra = &table;
  d.out.run = branch_indexed;
}

void end_lanes(Warp& w, Fragment& f, Mask mask) {
  check_bulk_at_exit(w, mask);
  f.mask &= ~mask;
  w.live &= ~mask;
  Cta& cta = *w.cta;
  cta.live_threads -= static_cast<uint32_t>(std::popcount(mask));
  ++w.version;
  ++cta.barrier_version;
  ++cta.cluster->events;
  // Who exits counts as arrived, at the barriers that come.
  if (!w.live) {
    for (NamedBarrier& b : cta.barriers) b.arriving.join(w.clock);
    cta.cluster->cluster_arriving.join(w.clock);
  }
  if (!w.live)
    for (const PendingRegisters& p : w.pending_registers)
      if (p.is_tcgen05) {
        cta.cluster->report(Severity::warning, Check::tmem, &cta, w.index, p.line,
                            "no tcgen05.wait::ld ever follows this load (nor, perhaps, others)");
        break;
      }
  if (!f.mask) {
    f.state = Fragment::State::unused;
    f.stack.clear();
    w.used &= ~(1u << (&f - w.fragments.data()));
  }
  release_barriers_after_exit(cta);
  if (cta.live_threads == 0) {
    cta.exited = true;
    trigger_dependents(cta);
    check_tmem_at_exit(cta);
  }
}

Action exit_lanes(Warp& w, Fragment& f, const Instr&, Mask mask) {
  bool whole = mask == f.mask;
  end_lanes(w, f, mask);
  if (!whole) ++f.pc;
  return Action::jump;
}

Action ret(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (f.stack.empty()) return exit_lanes(w, f, in, mask);
  if (mask != f.mask) {
    // The others go on; these return.
    Frame frame = f.stack.back();
    (void)frame;
    split(w, f, mask, f.pc);
    ++f.pc;
    // The split-off part stands at this very instruction; its guard is true in all its lanes.
    return Action::jump;
  }
  Frame frame = f.stack.back();
  f.stack.pop_back();
  const CallSite& call = *frame.call;
  const Function& callee = w.cta->cluster->launch->program->functions[call.function];
  for (size_t i = 0; i < call.results.size(); ++i)
    for (Mask m = mask; m; m &= m - 1) {
      int lane = first_lane(m);
      uint32_t bytes = std::min(call.results[i].bytes, callee.results[i].bytes);
      std::memcpy(local_place(w, lane, call.results[i].offset, bytes),
                  local_place(w, lane, callee.results[i].offset, bytes), bytes);
    }
  f.pc = frame.return_pc;
  return Action::jump;
}

// --- calls ---

std::string read_string(Warp& w, int lane, uint64_t address) {
  std::string out;
  for (; out.size() < 4096; ++address) {
    char c = static_cast<char>(*generic_place(w, lane, address, 1, false));
    if (!c) break;
    out += c;
  }
  return out;
}

/// printf with arguments as vprintf lays them out: 4 bytes for int, 8 for long, pointers and double, aligned
/// to size.
std::string format_printf(Warp& w, int lane, const std::string& format, uint64_t args) {
  std::string out;
  uint64_t at = 0;
  auto take = [&](uint32_t bytes) {
    at = (at + bytes - 1) & ~uint64_t{bytes - 1};
    uint64_t value = 0;
    std::memcpy(&value, generic_place(w, lane, args + at, bytes, false), bytes);
    at += bytes;
    return value;
  };
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    std::string spec = "%";
    ++i;
    bool is_long = false;
    while (i < format.size() &&
           std::string_view("-+ #0123456789.hlzjt*").find(format[i]) != std::string_view::npos) {
      if (format[i] == '*')
        spec += std::to_string(static_cast<int>(take(4)));
      else if (format[i] == 'l' || format[i] == 'z' || format[i] == 'j' || format[i] == 't')
        is_long = true;
      else if (format[i] != 'h')
        spec += format[i];
      ++i;
    }
    if (i >= format.size()) break;
    char c = format[i];
    char buffer[512];
    switch (c) {
      case '%':
        out += '%';
        break;
      case 'd':
      case 'i': {
        int64_t v = is_long ? static_cast<int64_t>(take(8)) : static_cast<int32_t>(take(4));
        std::snprintf(buffer, sizeof buffer, (spec + "lld").c_str(), static_cast<long long>(v));
        out += buffer;
        break;
      }
      case 'u':
      case 'x':
      case 'X':
      case 'o': {
        uint64_t v = is_long ? take(8) : take(4);
        std::snprintf(buffer, sizeof buffer, (spec + "ll" + c).c_str(), static_cast<unsigned long long>(v));
        out += buffer;
        break;
      }
      case 'c':
        out += static_cast<char>(take(4));
        break;
      case 'p':
        out += fmt::format("{:#x}", take(8));
        break;
      case 's': {
        uint64_t v = take(8);
        std::string text = v ? read_string(w, lane, v) : "(null)";
        std::snprintf(buffer, sizeof buffer, (spec + "s").c_str(), text.c_str());
        out += buffer;
        break;
      }
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        std::snprintf(buffer, sizeof buffer, (spec + c).c_str(), std::bit_cast<double>(take(8)));
        out += buffer;
        break;
      default:
        out += spec + c;
    }
  }
  return out;
}

uint64_t argument(Warp& w, int lane, const FunctionParam& p) {
  uint64_t value = 0;
  uint32_t bytes = std::min(p.bytes, 8u);
  std::memcpy(&value, local_place(w, lane, p.offset, bytes), bytes);
  return value;
}

Action call(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  const CallSite& site = *static_cast<const CallSite*>(in.extra);
  const Program& program = *w.cta->cluster->launch->program;
  if (site.builtin == CallSite::Builtin::vprintf) {
    for (Mask m = mask; m; m &= m - 1) {
      int lane = first_lane(m);
      std::string format = read_string(w, lane, argument(w, lane, site.arguments[0]));
      std::string text = format_printf(w, lane, format, argument(w, lane, site.arguments[1]));
      w.cta->cluster->launch->print(text);
      if (!site.results.empty()) {
        int32_t length = static_cast<int32_t>(text.size());
        std::memcpy(local_place(w, lane, site.results[0].offset, 4), &length, 4);
      }
    }
    return Action::next;
  }
  if (site.builtin == CallSite::Builtin::assertfail) {
    int lane = first_lane(mask);
    throw Fault(Check::trap, fmt::format("assertion '{}' failed at {}:{}",
                                         read_string(w, lane, argument(w, lane, site.arguments[0])),
                                         read_string(w, lane, argument(w, lane, site.arguments[1])),
                                         argument(w, lane, site.arguments[2])));
  }
  // Registers and frames of a function exist once, so it cannot be active twice in the same lanes.
  for (const Frame& frame : f.stack)
    if (frame.call->function == site.function)
      throw Fault(Check::illegal_instruction, "recursive calls are not supported");
  const Function& callee = program.functions[site.function];
  for (size_t i = 0; i < site.arguments.size(); ++i)
    for (Mask m = mask; m; m &= m - 1) {
      int lane = first_lane(m);
      uint32_t bytes = std::min(site.arguments[i].bytes, callee.params[i].bytes);
      std::memcpy(local_place(w, lane, callee.params[i].offset, bytes),
                  local_place(w, lane, site.arguments[i].offset, bytes), bytes);
    }
  if (mask != f.mask) {
    Mask others = f.mask & ~mask;
    uint32_t next = f.pc + 1;
    f.stack.push_back({next, &site});
    std::vector<Frame> inside = f.stack;
    f.stack.pop_back();
    split(w, f, others, next);
    f.stack = std::move(inside);
  } else {
    f.stack.push_back({f.pc + 1, &site});
  }
  f.pc = callee.entry_pc;
  return Action::jump;
}

void decode_call(Decode& d) {
  d.take("uni");
  // call (results), name, (arguments) [, prototype]; both lists may be missing.
  size_t at = 0;
  CallSite& site = d.module.program().calls.emplace_back();
  auto list = [&](const ParsedOperand& p, std::vector<FunctionParam>& out) {
    for (const ParsedOperand& part : p.parts) {
      auto found = d.module.find(d.function, d.in().scope, part.name);
      if (part.kind != ParsedOperand::Kind::name || found.kind != ModuleBuilder::Found::Kind::variable)
        d.fail("call parameters must be .param variables");
      const PlacedVariable& v = d.module.placed(found.index);
      if (v.space != StateSpace::param) d.fail("call parameters must be .param variables");
      out.push_back({static_cast<uint32_t>(v.offset), static_cast<uint32_t>(v.variable->bytes)});
    }
  };
  if (d.count() > 0 && d.parsed(0).kind == ParsedOperand::Kind::list) list(d.parsed(at++), site.results);
  const ParsedOperand& callee = d.parsed(at++);
  if (callee.kind != ParsedOperand::Kind::name) d.fail("expected a function name");
  if (at < d.count()) {
    if (d.parsed(at).kind != ParsedOperand::Kind::list) d.fail("indirect calls are not supported");
    list(d.parsed(at++), site.arguments);
  }
  if (at < d.count()) d.fail("indirect calls are not supported");
  int function = d.module.find_function(callee.name);
  if (callee.name == "vprintf") {
    site.builtin = CallSite::Builtin::vprintf;
    if (site.arguments.size() != 2) d.fail("vprintf takes two parameters");
  } else if (callee.name == "__assertfail") {
    site.builtin = CallSite::Builtin::assertfail;
    if (site.arguments.size() != 5) d.fail("__assertfail takes five parameters");
  } else if (function < 0 || !d.module.parsed().functions[static_cast<size_t>(function)].has_body) {
    d.fail("call of unknown function '" + std::string(callee.name) + "'");
  } else if (d.module.parsed().functions[static_cast<size_t>(function)].is_entry) {
    d.fail("call of a kernel");
  } else {
    site.function = function;
  }
  d.out.run = call;
  d.out.extra = &site;
}

Action trap(Warp&, Fragment&, const Instr&, Mask) { throw Fault(Check::trap, "the kernel executed trap"); }
Action nothing(Warp&, Fragment&, const Instr&, Mask) { return Action::next; }
Action sleep(Warp&, Fragment&, const Instr&, Mask) { return Action::yield; }

}  // namespace

void register_control(OpcodeTable& t) {
  t["bra"] = decode_bra;
  t["brx"] = decode_brx;
  t["call"] = decode_call;
  t["ret"] = [](Decode& d) {
    d.take("uni");
    d.out.run = ret;
  };
  t["exit"] = [](Decode& d) { d.out.run = exit_lanes; };
  t["trap"] = [](Decode& d) { d.out.run = trap; };
  t["nanosleep"] = [](Decode& d) {
    d.need_type();
    d.need_count(1, 1);
    d.src(d.parsed(0), 4);
    d.out.run = sleep;
  };
  t["pmevent"] = [](Decode& d) {
    d.take("mask");
    d.out.run = nothing;
  };
}

}  // namespace gemmtune::emulator
