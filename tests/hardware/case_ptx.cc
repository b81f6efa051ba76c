// The kernel around a case's body: parameters, registers, operands in, results out.
#include <fmt/format.h>

#include "tests/hardware/case_file.h"

namespace gemmtune::hardware {
namespace {

/// "fold:o:64": o0 to o63 turned and xored into one word, so that long fragments stay short in the file.
std::string folded(const std::string& result) {
  size_t colon = result.rfind(':');
  std::string name = result.substr(5, colon - 5), out = "  mov.b32 zt, 0;\n";
  for (int i = 0; i < std::stoi(result.substr(colon + 1)); ++i)
    out += fmt::format("  shf.l.wrap.b32 zt, zt, zt, 5; xor.b32 zt, zt, {}{};\n", name, i);
  return out;
}

}  // namespace

std::string Case::ptx() const {
  std::string out = ".version 9.0\n.target sm_90a\n.address_size 64\n";
  if (smem_bytes) out += ".extern .shared .align 1024 .b8 raw[];\n";
  out += module_text;
  out += ".visible .entry test(.param .u64 in, .param .u64 mem, .param .u64 result";
  for (const Map& map : maps) out += fmt::format(", .param .align 64 .b8 {}[128]", map.name);
  out += fmt::format(")\n.maxntid {}, {}, {}\n{{\n", block[0], block[1], block[2]);
  // Bodies may use all of these but the z ones.
  out +=
      "  .reg .b64 pin, pmem, pout, la, lb, lc, ld, le, lf, lg, lt, lu, zl;\n"
      "  .reg .b32 a, b, c, d, e, f, g, h, t, u, v, w, id, tid, lane, sraw, zt, zu;\n"
      "  .reg .b16 ha, hb, hc, hd, he, hf, hg;\n"
      "  .reg .b128 wa, wb, wc;\n"
      "  .reg .pred p, q, r;\n"
      "  ld.param.u64 pin, [in]; ld.param.u64 pmem, [mem]; ld.param.u64 pout, [result];\n"
      "  mov.u32 tid, %tid.x; mov.u32 lane, %laneid;\n"
      "  mov.u32 zt, %ctaid.x; mov.u32 zu, %ntid.x; mad.lo.u32 id, zt, zu, tid;\n";
  if (smem_bytes) out += "  mov.u32 sraw, raw;\n";
  for (const Map& map : maps) {
    out += fmt::format("  .reg .b64 p{0}; mov.b64 p{0}, {0}; cvta.param.u64 p{0}, p{0};\n", map.name);
  }
  if (!inputs.empty()) out += "  mul.wide.u32 zl, id, 32; add.u64 pin, pin, zl;\n";
  for (const Input& input : inputs)
    out += fmt::format("  ld.global.u64 l{0}, [pin+{1}]; cvt.u32.u64 {0}, l{0}; cvt.u16.u32 h{0}, {0};\n",
                       input.name, 8 * (input.name[0] - 'a'));
  for (const std::string& r : results) {  // what an instruction leaves alone shows
    if (r.rfind("fold:", 0) == 0) continue;
    if (r.size() == 2 && r[0] == 'l')
      out += fmt::format("  mov.b64 {}, 0xdeadbeefdeadbeef;\n", r);
    else if (r.size() == 2 && r[0] == 'h')
      out += fmt::format("  mov.b16 {}, 0xbeef;\n", r);
    else if (r == "p" || r == "q" || r == "r")
      out += fmt::format("  setp.ne.u32 {}, tid, tid;\n", r);
    else
      out += fmt::format("  mov.b32 {}, 0xdeadbeef;\n", r);
  }
  out += body;
  if (!results.empty())
    out += fmt::format("  mul.wide.u32 zl, id, {}; add.u64 pout, pout, zl;\n", 4 * words_per_thread());
  uint32_t at = 0;
  for (const std::string& r : results) {
    if (r.size() == 2 && r[0] == 'l') {
      out +=
          fmt::format("  mov.b64 {{zt, zu}}, {}; st.global.u32 [pout+{}], zt; st.global.u32 [pout+{}], zu;\n",
                      r, at, at + 4);
      at += 8;
      continue;
    }
    if (r.rfind("fold:", 0) == 0)
      out += folded(r) + fmt::format("  st.global.u32 [pout+{}], zt;\n", at);
    else if (r.size() == 2 && r[0] == 'h')
      out += fmt::format("  cvt.u32.u16 zt, {}; st.global.u32 [pout+{}], zt;\n", r, at);
    else if (r == "p" || r == "q" || r == "r")
      out += fmt::format("  selp.u32 zt, 1, 0, {}; st.global.u32 [pout+{}], zt;\n", r, at);
    else
      out += fmt::format("  st.global.b32 [pout+{}], {};\n", at, r);
    at += 4;
  }
  return out + "  ret;\n}\n";
}

}  // namespace gemmtune::hardware
