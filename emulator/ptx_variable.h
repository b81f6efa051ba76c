// Declarations of variables and parameters in PTX text.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "emulator/ptx_ast.h"
#include "emulator/ptx_cursor.h"

namespace gemmtune::emulator {

/// Of one module: it adds up the static variables, so that random text does not make the emulator allocate
/// gigabytes. Members throw PtxError.
class VariableParser {
 public:
  explicit VariableParser(PtxCursor& cursor) : cursor_(cursor) {}

  /// ".global .align 16 .b8 table[4] = {1, 2, 3, 4}, next;" to behind the ';'. `add` gets each with its name
  /// as a view into the text.
  void list(bool is_extern, const std::function<void(std::string_view, Variable)>& add);

  /// "(.param .u64 a, .param .b8 b[128])", or "()".
  std::vector<Variable> parameters();

 private:
  /// What stands before the names and holds for each of them.
  struct Prefix {
    Variable variable;
    uint64_t vector_length = 1;
  };
  Prefix prefix(bool is_extern);
  void skip_pointee();
  Variable declarator(const Prefix& prefix, std::string_view name);
  void initializer(Variable& v, bool array);
  void initial_list(Variable& v, int depth);
  void initial_value(Variable& v);
  void initial_address(Variable& v, size_t at);
  uint64_t initial_bits(ScalarType type);

  PtxCursor& cursor_;
  uint64_t total_bytes_ = 0;
};

}  // namespace gemmtune::emulator
