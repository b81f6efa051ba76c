// Communication inside a warp: shuffles, votes, match, redux, elect, bar.warp (PTX ISA 9.7.9.6, 9.7.13).
#include <fmt/format.h>

#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

/// Waits until every live lane of every member mask has arrived; a lane outside its own mask is an error.
bool members_here(Warp& w, Fragment& f, const Operand& op, Mask mask) {
  const uint8_t* masks = w.read(op);
  Mask required = 0;
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    Mask member = get<uint32_t>(masks, lane);
    if (!(member >> lane & 1))
      throw Fault(Check::convergence,
                  fmt::format("lane {} is not in its own member mask {:#010x}", lane, member));
    required |= member;
  }
  required &= w.live;
  if (!converged(w, f, required)) return false;
  if (required & ~mask)
    throw Fault(Check::convergence,
                fmt::format("lanes {:#010x} of the member mask are switched off", required & ~mask));
  return true;
}

/// mod[0]: up, down, bfly, idx.
Action shfl(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!members_here(w, f, in.ops[5], mask)) return Action::wait;
  const uint8_t *a = w.read(in.ops[2]), *b = w.read(in.ops[3]), *c = w.read(in.ops[4]),
                *members = w.read(in.ops[5]);
  uint32_t out[32];
  Mask valid = 0;
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    uint32_t bval = get<uint32_t>(b, lane) & 31, cval = get<uint32_t>(c, lane);
    uint32_t clamp = cval & 31, segment = cval >> 8 & 31;
    uint32_t l = static_cast<uint32_t>(lane);
    uint32_t max_lane = (l & segment) | (clamp & ~segment), min_lane = l & segment;
    int64_t from;
    bool ok;
    switch (in.mod[0]) {
      case 0:
        from = int64_t{l} - bval;
        ok = from >= max_lane;
        break;
      case 1:
        from = l + bval;
        ok = from <= max_lane;
        break;
      case 2:
        from = l ^ bval;
        ok = from <= max_lane;
        break;
      default:
        from = min_lane | (bval & ~segment);
        ok = from <= max_lane;
        break;
    }
    if (!ok) from = lane;
    if (ok) valid |= 1u << lane;
    // The source must take part; a value read from another lane is undefined.
    if (!(get<uint32_t>(members, lane) >> from & 1) || !(mask >> from & 1))
      report_here(w, Severity::warning, Check::convergence,
                  fmt::format("lane {} reads lane {}, which does not take part", lane, from));
    out[lane] = get<uint32_t>(a, static_cast<int>(from));
  }
  uint8_t* d = in.ops[0].kind == Operand::Kind::none ? nullptr : dst_of(w, in.ops[0]);
  for (Mask m = mask; m && d; m &= m - 1) set<uint32_t>(d, first_lane(m), out[first_lane(m)]);
  set_predicate(w, in.ops[1], mask, valid);
  return Action::next;
}

void decode_shfl(Decode& d) {
  if (!d.take("sync")) d.fail("only shfl.sync exists on these targets");
  d.out.mod[0] = static_cast<uint32_t>(d.need_one_of({"up", "down", "bfly", "idx"}));
  d.need_type();
  d.need_count(5, 5);
  const ParsedOperand& to = d.parsed(0);
  if (to.kind == ParsedOperand::Kind::pair) {
    d.dst(to.parts[0], 4);
    d.dst(to.parts[1], 0);
  } else {
    d.dst(to, 4);
    d.none();
  }
  for (size_t i = 1; i < 5; ++i) d.src(d.parsed(i), 4);
  d.out.run = shfl;
}

/// mod[0]: all, any, uni, ballot.
Action vote(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!members_here(w, f, in.ops[2], mask)) return Action::wait;
  const uint8_t* members = w.read(in.ops[2]);
  Mask p = w.predicate(in.ops[1]);
  Mask result = 0;
  uint32_t ballots[32];
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    Mask member = get<uint32_t>(members, lane) & w.live, yes = p & member;
    ballots[lane] = yes;
    bool r = in.mod[0] == 0 ? yes == member : in.mod[0] == 1 ? yes != 0 : yes == member || yes == 0;
    if (r) result |= 1u << lane;
  }
  if (in.mod[0] == 3) {
    uint8_t* d = dst_of(w, in.ops[0]);
    for (Mask m = mask; m; m &= m - 1) set<uint32_t>(d, first_lane(m), ballots[first_lane(m)]);
  } else {
    set_predicate(w, in.ops[0], mask, result);
  }
  return Action::next;
}

void decode_vote(Decode& d) {
  if (!d.take("sync")) d.fail("only vote.sync exists on these targets");
  d.out.mod[0] = static_cast<uint32_t>(d.need_one_of({"all", "any", "uni", "ballot"}));
  d.need_type();
  d.need_count(3, 3);
  d.dst(d.parsed(0), d.out.mod[0] == 3 ? 4 : 0, false);
  d.src(d.parsed(1), 0);
  d.src(d.parsed(2), 4);
  d.out.run = vote;
}

/// mod[0]: any, all; mod[1]: 64-bit.
Action match(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!members_here(w, f, in.ops[3], mask)) return Action::wait;
  const uint8_t* members = w.read(in.ops[3]);
  uint8_t* d = dst_of(w, in.ops[0]);
  Mask all = 0;
  uint32_t out[32];
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    Mask same = 0, member = get<uint32_t>(members, lane) & w.live;
    for (Mask o = member; o; o &= o - 1)
      if (lane_value(w, in.ops[2], first_lane(o)) == lane_value(w, in.ops[2], lane)) same |= o & -o;
    if (in.mod[0]) {
      out[lane] = same == member ? same : 0;
      if (same == member) all |= 1u << lane;
    } else {
      out[lane] = same;
    }
  }
  for (Mask m = mask; m; m &= m - 1) set<uint32_t>(d, first_lane(m), out[first_lane(m)]);
  set_predicate(w, in.ops[1], mask, all);
  return Action::next;
}

void decode_match(Decode& d) {
  bool all = d.need_one_of({"any", "all"}) == 1;
  if (!d.take("sync")) d.fail("only match.sync exists");
  ScalarType t = d.need_type();
  d.need_count(3, 3);
  const ParsedOperand& to = d.parsed(0);
  if (to.kind == ParsedOperand::Kind::pair) {
    d.dst(to.parts[0], 4);
    d.dst(to.parts[1], 0);
  } else {
    d.dst(to, 4, false);
    d.none();
  }
  d.src(d.parsed(1), size_bytes(t));
  d.src(d.parsed(2), 4);
  d.out.mod[0] = all;
  d.out.run = match;
}

/// mod[0]: add, min, max, and, or, xor; mod[1]: signed; mod[2]: f32 (1 + abs, + 2 NaN).
Action redux(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!members_here(w, f, in.ops[2], mask)) return Action::wait;
  const uint8_t *a = w.read(in.ops[1]), *members = w.read(in.ops[2]);
  uint32_t out[32];
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    Mask member = get<uint32_t>(members, lane) & w.live;
    bool first = true;
    uint32_t r = 0;
    for (Mask o = member; o; o &= o - 1) {
      uint32_t v = get<uint32_t>(a, first_lane(o));
      if (in.mod[2]) {
        if (in.mod[2] & 2) v &= 0x7fffffff;
        float x = std::bit_cast<float>(r), y = std::bit_cast<float>(v);
        bool nan_x = x != x, nan_y = y != y;
        if (first)
          r = v;
        else if (nan_x || nan_y)
          r = (in.mod[2] & 4) || (nan_x && nan_y) ? 0x7fffffff : nan_x ? v : r;
        else
          r = (in.mod[0] == 1 ? y < x : y > x) ? v : r;
      } else {
        bool less = in.mod[1] ? int32_t(v) < int32_t(r) : v < r;
        switch (in.mod[0]) {
          case 0:
            r = first ? v : r + v;
            break;
          case 1:
            r = first || less ? v : r;
            break;
          case 2:
            r = first || !less ? v : r;
            break;
          case 3:
            r = first ? v : r & v;
            break;
          case 4:
            r = first ? v : r | v;
            break;
          default:
            r = first ? v : r ^ v;
            break;
        }
      }
      first = false;
    }
    out[lane] = r;
  }
  uint8_t* d = dst_of(w, in.ops[0]);
  for (Mask m = mask; m; m &= m - 1) set<uint32_t>(d, first_lane(m), out[first_lane(m)]);
  return Action::next;
}

void decode_redux(Decode& d) {
  if (!d.take("sync")) d.fail("redux needs .sync");
  d.out.mod[0] = static_cast<uint32_t>(d.need_one_of({"add", "min", "max", "and", "or", "xor"}));
  bool absolute = d.take("abs"), nan = d.take("NaN");
  ScalarType t = d.need_type();
  d.out.mod[1] = is_signed(t);
  if (t == ScalarType::f32)
    d.out.mod[2] = 1u | (absolute ? 2u : 0) | (nan ? 4u : 0);
  else if (absolute || nan || size_bytes(t) != 4)
    d.fail("qualifier or type is not supported here");
  d.need_count(3, 3);
  d.dst(d.parsed(0), 4, false);
  d.src(d.parsed(1), 4);
  d.src(d.parsed(2), 4);
  d.out.run = redux;
}

/// The lowest lane of the mask (ptx-facts 1.2, measured on an H200; PTX does not promise it).
Action elect(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!members_here(w, f, in.ops[2], mask)) return Action::wait;
  const uint8_t* members = w.read(in.ops[2]);
  Mask elected = 0;
  uint8_t* d = in.ops[0].kind == Operand::Kind::none ? nullptr : dst_of(w, in.ops[0]);
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    int leader = first_lane(get<uint32_t>(members, lane) & w.live);
    if (leader == lane) elected |= 1u << lane;
    if (d) set<uint32_t>(d, lane, static_cast<uint32_t>(leader));
  }
  set_predicate(w, in.ops[1], mask, elected);
  return Action::next;
}

void decode_elect(Decode& d) {
  if (!d.take("sync")) d.fail("elect needs .sync");
  d.need_count(2, 2);
  const ParsedOperand& to = d.parsed(0);
  if (to.kind != ParsedOperand::Kind::pair) d.fail("expected d|p");
  d.dst(to.parts[0], 4);
  d.dst(to.parts[1], 0);
  d.src(d.parsed(1), 4);
  d.out.run = elect;
}

Action activemask(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  for_lanes(mask, [&](int l) { set<uint32_t>(d, l, mask); });
  return Action::next;
}

/// movmatrix.trans.m8n8.b16: row r of the result is column r of the source.
Action movmatrix(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!aligned(w, f, mask)) return Action::wait;
  const uint8_t* a = w.read(in.ops[1]);
  uint16_t m[8][8];
  for (int l = 0; l < 32; ++l) {
    uint32_t v = get<uint32_t>(a, l);
    m[l / 4][2 * (l % 4)] = static_cast<uint16_t>(v);
    m[l / 4][2 * (l % 4) + 1] = static_cast<uint16_t>(v >> 16);
  }
  uint8_t* d = dst_of(w, in.ops[0]);
  for (int l = 0; l < 32; ++l)
    set<uint32_t>(d, l, uint32_t{m[2 * (l % 4)][l / 4]} | uint32_t{m[2 * (l % 4) + 1][l / 4]} << 16);
  return Action::next;
}

}  // namespace

void register_warp(OpcodeTable& t) {
  t["shfl"] = decode_shfl;
  t["vote"] = decode_vote;
  t["match"] = decode_match;
  t["redux"] = decode_redux;
  t["elect"] = decode_elect;
  t["activemask"] = [](Decode& d) {
    d.need_type();
    d.need_count(1, 1);
    d.dst(d.parsed(0), 4, false);
    d.out.run = activemask;
  };
  t["movmatrix"] = [](Decode& d) {
    if (!d.take("sync") || !d.take("aligned") || !d.take("m8n8") || !d.take("trans"))
      d.fail("unknown form of movmatrix");
    d.need_type();
    d.need_count(2, 2);
    d.dst(d.parsed(0), 4, false);
    d.src(d.parsed(1), 4);
    d.out.run = movmatrix;
  };
}

}  // namespace gemmtune::emulator
