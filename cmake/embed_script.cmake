# Run by gemmtune_embed_files at build time: writes OUT.h and OUT.cc for FILES (named relative to BASE).
# A string literal may hold at most 64 KiB portably, so each file becomes adjacent raw literals of 8,000 characters.
file(WRITE ${OUT}.h "#pragma once
#include <span>
#include <string_view>
namespace gemmtune {
struct ${SYMBOL}_File { std::string_view name, text; };
std::span<const ${SYMBOL}_File> ${SYMBOL}();
}  // namespace gemmtune
")
set(body "#include \"${STEM}.h\"\nnamespace gemmtune {\nstatic constexpr ${SYMBOL}_File kFiles[] = {\n")
separate_arguments(FILES)
foreach(file ${FILES})
  file(RELATIVE_PATH name ${BASE} ${file})
  file(READ ${file} text HEX)   # through hex: CMake lists would eat semicolons and brackets
  string(LENGTH "${text}" length)
  string(APPEND body "    {\"${name}\",\n")
  set(pos 0)
  while(pos LESS length)
    string(SUBSTRING "${text}" ${pos} 160 line)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" line "${line}")
    string(APPEND body "     \"${line}\"\n")
    math(EXPR pos "${pos} + 160")
  endwhile()
  string(APPEND body "     },\n")
endforeach()
string(APPEND body "};\nstd::span<const ${SYMBOL}_File> ${SYMBOL}() { return kFiles; }\n}  // namespace gemmtune\n")
file(WRITE ${OUT}.cc "${body}")
