#include "emulator/ptx_instruction.h"

#include "emulator/error.h"

namespace gemmtune::emulator {
namespace {

using Kind = ParsedOperand::Kind;

constexpr int kMaxOperandNesting = 4;

ParsedOperand operand(PtxCursor& cursor, int depth = 0);

ParsedOperand sequence(PtxCursor& cursor, Kind kind, std::string_view close, int depth) {
  ParsedOperand op;
  op.kind = kind;
  if (cursor.accept(close)) return op;
  for (;;) {
    op.parts.push_back(operand(cursor, depth + 1));
    if (cursor.accept(close)) break;
    cursor.expect(",");
  }
  if (kind == Kind::address) op.offset = op.parts.front().offset;
  return op;
}

ParsedOperand operand(PtxCursor& cursor, int depth) {
  if (depth > kMaxOperandNesting) cursor.fail("operands are nested too deeply");
  ParsedOperand op;
  if (cursor.accept("!")) {
    op = operand(cursor, depth + 1);
    op.negated = !op.negated;
    return op;
  }
  if (cursor.accept("{")) return sequence(cursor, Kind::vector, "}", depth);
  if (cursor.accept("[")) {
    op = sequence(cursor, Kind::address, "]", depth);
    if (op.parts.empty()) cursor.fail("empty address");
    return op;
  }
  if (cursor.accept("(")) return sequence(cursor, Kind::list, ")", depth);
  if (cursor.is("-") || cursor.peek().kind == TokenKind::number) {
    // Constant expressions such as "4+8" do not occur in generated code, but offsets of addresses do.
    PtxNumber constant = cursor.number("unexpected ");
    op.kind = constant.kind;
    op.bits = constant.bits;
    return op;
  }
  if (cursor.peek().kind != TokenKind::word) cursor.fail("unexpected " + cursor.found() + " among operands");
  op.name = cursor.take().text;
  if (op.name == "_") {
    op.kind = Kind::sink;
    return op;
  }
  op.kind = Kind::name;
  if (cursor.at_directive() && cursor.peek().glued) {
    std::string_view component = cursor.take().text;
    op.name = std::string_view(op.name.data(), op.name.size() + 1 + component.size());
  }
  op.offset = cursor.offset();
  return op;
}

}  // namespace

ParsedInstr parse_instruction(PtxCursor& cursor) {
  ParsedInstr in;
  in.line = cursor.peek().line;
  size_t first = cursor.position();
  if (cursor.accept("@")) {
    in.guard_negated = cursor.accept("!");
    in.guard = cursor.word();
  }
  in.opcode = cursor.word();
  // The lexer keeps "cta_group::1" and "get_first_ctaid::x" whole: nothing to join here.
  while (cursor.at_directive()) in.qualifiers.push_back(cursor.take().text);
  while (!cursor.is(";")) {
    if (cursor.at_end()) throw PtxError(in.line, "instruction is never closed");
    in.operands.push_back(operand(cursor));
    if (cursor.accept("|")) {
      ParsedOperand pair;
      pair.kind = Kind::pair;
      pair.parts.push_back(std::move(in.operands.back()));
      pair.parts.push_back(operand(cursor));
      in.operands.back() = std::move(pair);
    }
    if (!cursor.is(";")) cursor.expect(",");
  }
  in.text = cursor.text_since(first) + ";";
  cursor.take();
  return in;
}

}  // namespace gemmtune::emulator
