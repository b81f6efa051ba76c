// mov, cvta, isspacep, selp, slct, prmt.
#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

template <class T>
Action move(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t* a = w.read(in.ops[1]);
  for_lanes(mask, [&](int l) { set<T>(d, l, get<T>(a, l)); });
  return Action::next;
}

struct Wide {
  uint64_t low, high;
};

Action move_predicate(Warp& w, Fragment&, const Instr& in, Mask mask) {
  set_predicate(w, in.ops[0], mask, w.predicate(in.ops[1]));
  return Action::next;
}

/// mov d, {a, b, ..}: the first element is the lowest. mod[0]: bytes an element, mod[1]: bytes in all.
Action pack(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  int element = static_cast<int>(in.mod[0]);
  for_lanes(mask, [&](int l) {
    uint8_t bytes[16] = {};
    for (int i = 1; i < in.op_count; ++i)
      std::memcpy(bytes + (i - 1) * element, w.read(in.ops[i]) + l * std::max<int>(in.ops[i].width, 4),
                  static_cast<size_t>(element));
    if (in.mod[1] == 16)
      set<Wide>(d, l, std::bit_cast<Wide>(bytes));
    else if (in.mod[1] == 8) {
      uint64_t v;
      std::memcpy(&v, bytes, 8);
      set<uint64_t>(d, l, v);
    } else {
      uint32_t v = 0;
      std::memcpy(&v, bytes, in.mod[1]);
      set<uint32_t>(d, l, v);
    }
  });
  return Action::next;
}

/// mov {a, b, ..}, s. The source is the last operand.
Action unpack(Warp& w, Fragment&, const Instr& in, Mask mask) {
  int n = in.op_count - 1;
  int element = static_cast<int>(in.mod[0]);
  const Operand& source = in.ops[n];
  for_lanes(mask, [&](int l) {
    uint8_t bytes[16] = {};
    std::memcpy(bytes, w.read(source) + l * source.width, source.width);
    for (int i = 0; i < n; ++i) {
      if (in.ops[i].kind == Operand::Kind::none) continue;
      uint64_t v = 0;
      std::memcpy(&v, bytes + i * element, static_cast<size_t>(element));
      uint8_t* d = dst_of(w, in.ops[i]);
      if (in.ops[i].width == 8)
        set<uint64_t>(d, l, v);
      else
        set<uint32_t>(d, l, static_cast<uint32_t>(v));
    }
  });
  return Action::next;
}

Handler move_of(int width) { return width == 16 ? move<Wide> : width == 8 ? move<uint64_t> : move<uint32_t>; }

void decode_mov(Decode& d) {
  ScalarType type = d.need_type();
  d.need_count(2, 2);
  const ParsedOperand &to = d.parsed(0), &from = d.parsed(1);
  if (type == ScalarType::pred) {
    d.out.run = move_predicate;
    d.dst(to, 0);
    d.src(from, 0);
    return;
  }
  int bytes = size_bytes(type), width = std::max(bytes, 4);
  auto parts_of = [&](const ParsedOperand& p) {
    size_t n = p.parts.size();
    if (n < 2 || static_cast<size_t>(bytes) % n) d.fail("wrong number of vector elements");
    d.out.mod[0] = static_cast<uint32_t>(static_cast<size_t>(bytes) / n);
    d.out.mod[1] = static_cast<uint32_t>(bytes);
    return std::max<int>(static_cast<int>(d.out.mod[0]), 4);
  };
  if (from.kind == ParsedOperand::Kind::vector) {
    int element = parts_of(from);
    d.out.run = pack;
    d.dst(to, width, false);
    for (const ParsedOperand& p : from.parts) d.src(p, element);
  } else if (to.kind == ParsedOperand::Kind::vector) {
    int element = parts_of(to);
    d.out.run = unpack;
    for (const ParsedOperand& p : to.parts) d.dst(p, element);
    d.src(from, width);
  } else {
    d.out.run = move_of(width);
    d.dst(to, width, false);
    d.src_as(from, type);
  }
}

/// mod[0]: bits 40 and up of the window. `to` removes it.
template <bool kTo>
Action cvta(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t* a = w.read(in.ops[1]);
  uint64_t window = uint64_t{in.mod[0]} << kWindowShift;
  for_lanes(mask, [&](int l) {
    uint64_t v = get<uint64_t>(a, l);
    set<uint64_t>(d, l, kTo ? (window ? v & ((1ull << kWindowShift) - 1) : v) : v | window);
  });
  return Action::next;
}

uint32_t window_of(Decode& d, int space) {
  (void)d;
  switch (space) {
    case 0:
    case 1:
    case 2:
      return kSharedWindow >> kWindowShift;
    case 3:
      return kLocalWindow >> kWindowShift;
    case 4:
      return kParamWindow >> kWindowShift;
    default:
      return 0;
  }
}

const std::initializer_list<std::string_view> kSpaces = {
    "shared", "shared::cta", "shared::cluster", "local", "param", "global", "const", "param::entry"};

void decode_cvta(Decode& d) {
  bool to = d.take("to");
  int space = d.need_one_of(kSpaces);
  if (space == 7) space = 4;
  if (size_bytes(d.need_type()) != 8) d.fail("only 64-bit addresses are supported");
  d.need_count(2, 2);
  d.out.run = to ? cvta<true> : cvta<false>;
  d.out.mod[0] = window_of(d, space);
  d.dst(d.parsed(0), 8, false);
  d.src(d.parsed(1), 8);
}

bool in_constant_variable(const Program& program, uint64_t address) {
  const auto& variables = program.parsed->variables;
  for (size_t i = 0; i < variables.size(); ++i)
    if (variables[i].space == StateSpace::constant &&
        address - kModuleWindow - program.module_variable_offsets[i] < variables[i].bytes)
      return true;
  return false;
}

/// isspacep.global and, if mod[2], isspacep.const.
bool is_global(Warp& w, const Instr& in, uint64_t address) {
  uint64_t window = address >> kWindowShift;
  bool of_module = window == kModuleWindow >> kWindowShift;
  if (of_module && in_constant_variable(*w.cta->cluster->launch->program, address)) return in.mod[2];
  return !in.mod[2] && (of_module || window >= kGlobalBase >> kWindowShift);
}

Action isspacep(Warp& w, Fragment&, const Instr& in, Mask mask) {
  const uint8_t* a = w.read(in.ops[1]);
  Mask result = 0;
  for_lanes(mask, [&](int l) {
    uint64_t v = get<uint64_t>(a, l);
    bool yes = in.mod[0] ? v >> kWindowShift == in.mod[0] : is_global(w, in, v);
    if (yes && in.mod[1]) yes = ((v & 0xffffffff) >> kRankShift) == w.cta->rank;  // shared::cta
    if (yes) result |= 1u << l;
  });
  set_predicate(w, in.ops[0], mask, result);
  return Action::next;
}

void decode_isspacep(Decode& d) {
  int space = d.need_one_of(kSpaces);
  if (space == 7) space = 4;
  d.need_count(2, 2);
  d.out.run = isspacep;
  d.out.mod[0] = window_of(d, space);
  d.out.mod[1] = space <= 1;
  d.out.mod[2] = space == 6;
  d.dst(d.parsed(0), 0);
  d.src(d.parsed(1), 8);
}

template <class T>
Action selp(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]);
  Mask p = w.predicate(in.ops[3]);
  for_lanes(mask, [&](int l) { set<T>(d, l, p >> l & 1 ? get<T>(a, l) : get<T>(b, l)); });
  return Action::next;
}

void decode_selp(Decode& d) {
  ScalarType type = d.need_type();
  d.need_count(4, 4);
  d.out.run = size_bytes(type) == 8 ? selp<uint64_t> : selp<uint32_t>;
  int width = std::max(size_bytes(type), 4);
  d.dst(d.parsed(0), width, false);
  d.src_as(d.parsed(1), type);
  d.src_as(d.parsed(2), type);
  d.src(d.parsed(3), 0);
}

template <class T, class C>
Action slct(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]), *c = w.read(in.ops[3]);
  for_lanes(mask, [&](int l) { set<T>(d, l, get<C>(c, l) >= C{0} ? get<T>(a, l) : get<T>(b, l)); });
  return Action::next;
}

void decode_slct(Decode& d) {
  bool ftz = d.take("ftz");
  ScalarType type = d.need_type(), by = d.need_type();
  if (by != ScalarType::s32 && by != ScalarType::f32) d.fail("the selector must be .s32 or .f32");
  if (ftz) d.fail("slct.ftz is not supported");
  d.need_count(4, 4);
  bool wide = size_bytes(type) == 8;
  if (by == ScalarType::s32)
    d.out.run = wide ? slct<uint64_t, int32_t> : slct<uint32_t, int32_t>;
  else
    d.out.run = wide ? slct<uint64_t, float> : slct<uint32_t, float>;
  d.dst(d.parsed(0), std::max(size_bytes(type), 4), false);
  d.src_as(d.parsed(1), type);
  d.src_as(d.parsed(2), type);
  d.src(d.parsed(3), 4);
}

uint32_t permute(uint32_t a, uint32_t b, uint32_t c, uint32_t mode) {
  uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t out = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t select;
    bool sign = false;
    uint32_t low = c & 3;
    switch (mode) {
      case 0:
        select = c >> (4 * i) & 7;
        sign = c >> (4 * i) & 8;
        break;
      case 1:
        select = low + i;
        break;  // f4e
      case 2:
        select = (8 + low - i) & 7;
        break;  // b4e
      case 3:
        select = low;
        break;  // rc8
      case 4:
        select = std::max(i, low);
        break;  // ecl
      case 5:
        select = std::min(i, low);
        break;  // ecr
      default:
        select = (low & 1) * 2 + (i & 1);
        break;  // rc16
    }
    uint32_t byte = bytes >> (8 * select) & 0xff;
    if (sign) byte = byte & 0x80 ? 0xff : 0;
    out |= byte << (8 * i);
  }
  return out;
}

Action prmt(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]), *c = w.read(in.ops[3]);
  for_lanes(mask, [&](int l) {
    set<uint32_t>(d, l, permute(get<uint32_t>(a, l), get<uint32_t>(b, l), get<uint32_t>(c, l), in.mod[0]));
  });
  return Action::next;
}

void decode_prmt(Decode& d) {
  if (size_bytes(d.need_type()) != 4) d.fail("prmt works on .b32");
  d.out.mod[0] = static_cast<uint32_t>(d.take_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}) + 1);
  d.need_count(4, 4);
  d.out.run = prmt;
  d.dst(d.parsed(0), 4, false);
  for (size_t i = 1; i < 4; ++i) d.src(d.parsed(i), 4);
}

}  // namespace

void register_move(OpcodeTable& t) {
  t["mov"] = decode_mov;
  t["cvta"] = decode_cvta;
  t["isspacep"] = decode_isspacep;
  t["selp"] = decode_selp;
  t["slct"] = decode_slct;
  t["prmt"] = decode_prmt;
}

}  // namespace gemmtune::emulator
