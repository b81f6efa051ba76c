#include "gemm/shape_list.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "gemm/error.h"

namespace gemmtune {
namespace {

using Shapes = std::vector<ListedShape>;

Shapes parse(std::string_view text) { return parse_shape_list(text, "list.csv"); }

std::string message_of(std::string_view text) {
  try {
    parse(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

/// A file in a folder of its own, gone after the test.
class ShapeFile : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / ("shape_list_" + std::string(info->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(std::string_view bytes) {
    std::filesystem::path path = folder_ / "list.csv";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  /// The message with the folder cut off.
  std::string message_of(const std::filesystem::path& path) {
    try {
      read_shape_list(path);
    } catch (const UsageError& error) {
      std::string text = error.what();
      size_t at = text.find(folder_.string());
      return at == std::string::npos ? text : text.erase(at, folder_.string().size());
    }
    return "accepted";
  }

  std::filesystem::path folder_;
};

TEST(ShapeList, ReadsTheColumnsInAnyOrderAndCase) {
  EXPECT_EQ(parse("m,n,k\n1,2,3\n4,5,6\n"), (Shapes{{{1, 2, 3}, "", 1}, {{4, 5, 6}, "", 1}}));
  EXPECT_EQ(parse("Weight, K ,name,N,\tM\n0.5, 3 , attention out ,2, 1\n"),
            (Shapes{{{1, 2, 3}, "attention out", 0.5}}));
  EXPECT_EQ(parse("m,n,k,weight\n1,2,3,\n"), (Shapes{{{1, 2, 3}, "", 1}}));
  EXPECT_EQ(parse("m,n,k\n2147483647,2147483647,2147483647"),
            (Shapes{{{2147483647, 2147483647, 2147483647}, "", 1}}));
}

TEST(ShapeList, SkipsCommentsAndBlankLinesAndTakesEveryLineEnd) {
  Shapes want{{{1, 2, 3}, "", 1}, {{4, 5, 6}, "", 1}};
  EXPECT_EQ(parse("# made by hand, 2 shapes\n\n  \t\nm,n,k\n  # attention\n1,2,3\n\n4,5,6\n\n"), want);
  EXPECT_EQ(parse("m,n,k\r\n1,2,3\r\n4,5,6\r\n"), want);
  EXPECT_EQ(parse("m,n,k\r1,2,3\r4,5,6"), want);
}

TEST(ShapeList, QuotedNames) {
  EXPECT_EQ(parse("name,m,n,k\n\"qkv, \"\"fused\"\"\",1,2,3\n"), (Shapes{{{1, 2, 3}, "qkv, \"fused\"", 1}}));
  EXPECT_EQ(parse("name,m,n,k\n\"# not a comment\",1,2,3\n"), (Shapes{{{1, 2, 3}, "# not a comment", 1}}));
  EXPECT_EQ(parse("name,m,n,k\n \" spaces \" ,\"1\",2,3\n"), (Shapes{{{1, 2, 3}, " spaces ", 1}}));
  EXPECT_EQ(parse("name,m,n,k\n\"two\r\nlines\",1,2,3\n"), (Shapes{{{1, 2, 3}, "two lines", 1}}));
  EXPECT_EQ(message_of("name,m,n,k\n\"two\nlines\",1,2,0\n"),
            "list.csv:2: k '0' is not positive: give a number from 1 to 2147483647");
  EXPECT_EQ(
      message_of("name,m,n,k\n\"two\nlines\",1,2,3\nx,1,2\n"),
      "list.csv:4: 3 fields where the header has 4: give every column a field, and quote names with commas");
}

TEST(ShapeList, DuplicatesBecomeOne) {
  EXPECT_EQ(parse("m,n,k,name,weight\n1,2,3,o,80\n9,9,9,x,1\n1,2,3,down,2.5\n1,2,3,o,1\n1,2,3,,1\n"),
            (Shapes{{{1, 2, 3}, "o + down", 84.5}, {{9, 9, 9}, "x", 1}}));
  EXPECT_EQ(message_of("m,n,k,weight\n1,2,3,1e308\n1,2,3,1e308\n"),
            "list.csv:3: the weights of 1x2x3 add up to more than a number holds: divide all weights");
}

TEST(ShapeList, RefusesTheHeaderWithTheReason) {
  EXPECT_EQ(message_of(""),
            "list.csv:1: the shape list is empty: give a header 'm,n,k,name,weight' and one line a shape");
  EXPECT_EQ(message_of("\n# nothing\n"), message_of(""));
  EXPECT_EQ(message_of("# x\n4096,4096,4096\n"),
            "list.csv:2: no header: put a line such as 'm,n,k,name,weight' above '4096,4096,4096'");
  EXPECT_EQ(message_of("4096x4096x4096\n"),
            "list.csv:1: no header: put a line such as 'm,n,k,name,weight' above '4096x4096x4096'");
  EXPECT_EQ(message_of("qkv,1,2,3\n"),
            "list.csv:1: no header: put a line such as 'm,n,k,name,weight' above 'qkv,1,2,3'");
  EXPECT_EQ(message_of("m;n;k\n1;2;3\n"),
            "list.csv:1: no commas in the header 'm;n;k': separate the columns by commas");
  EXPECT_EQ(message_of("m,n,k,wieght\n"),
            "list.csv:1: unknown column 'wieght' (did you mean 'weight'?): the columns are m, n, k and "
            "optionally name, "
            "weight");
  EXPECT_EQ(message_of("m,n,k,Lable\n"),
            "list.csv:1: unknown column 'Lable': the columns are m, n, k and optionally name, weight");
  EXPECT_EQ(message_of("m,n,k,N\n"), "list.csv:1: column 'n' occurs twice: remove one");
  EXPECT_EQ(message_of("m,n,k,\n"), "list.csv:1: column 4 has no name: name it or remove it");
  EXPECT_EQ(message_of("m,n,name\n"),
            "list.csv:1: column 'k' is missing: the header needs m, n and k, such as 'm,n,k,name,weight'");
  EXPECT_EQ(message_of("\n# x\nm,n,k\n# y\n"),
            "list.csv:3: no shapes below the header: add lines such as 4096,4096,4096");
}

TEST(ShapeList, RefusesARowWithTheReason) {
  auto row = [](std::string_view text) {
    return message_of("m,n,k,weight\n1,1,1,1\n" + std::string(text) + "\n");
  };
  EXPECT_EQ(
      row("1,2,3"),
      "list.csv:3: 3 fields where the header has 4: give every column a field, and quote names with commas");
  EXPECT_EQ(
      row("1,2,3,1,1"),
      "list.csv:3: 5 fields where the header has 4: give every column a field, and quote names with commas");
  EXPECT_EQ(row("0,2,3,1"), "list.csv:3: m '0' is not positive: give a number from 1 to 2147483647");
  EXPECT_EQ(row("1,-2,3,1"), "list.csv:3: n '-2' is not positive: give a number from 1 to 2147483647");
  EXPECT_EQ(row("1,-99999999999999999999,3,1"),
            "list.csv:3: n '-99999999999999999999' is not positive: give a number from 1 to 2147483647");
  EXPECT_EQ(row("1,2,2147483648,1"), "list.csv:3: k '2147483648' is larger than 2147483647");
  EXPECT_EQ(row("1,2,99999999999999999999,1"),
            "list.csv:3: k '99999999999999999999' is larger than 2147483647");
  EXPECT_EQ(row(",2,3,1"), "list.csv:3: m is empty: give a whole number from 1 to 2147483647");
  for (std::string bad : {"x", "1.0", "1e3", "0x10", "+1", "1 2", "1x"})
    EXPECT_EQ(row(bad + ",2,3,1"),
              "list.csv:3: m '" + bad + "' is not a whole number: give one from 1 to 2147483647");
  for (std::string bad : {"0", "-1", "x", "nan", "inf", "1e999", "1 2", "0x1p3"})
    EXPECT_EQ(row("1,2,3," + bad),
              "list.csv:3: weight '" + bad + "' is not a positive number: give one such as 1 or 0.25");
  EXPECT_EQ(row("1,2,3,\"1"), "list.csv:3: a quoted field is not closed: add the missing \"");
  EXPECT_EQ(row("1,2,3,\"1\"\""), "list.csv:3: a quoted field is not closed: add the missing \"");
  EXPECT_EQ(row("1,2,3,\"1\"x"), "list.csv:3: text after the closing quote of '1': a comma belongs there");
  EXPECT_EQ(row("1,2,3,1\"x"),
            "list.csv:3: a quote inside the field '1\"x': quote the whole field and double the quotes in it");
}

TEST(ShapeList, MessagesStayOneShortLine) {
  std::string message = message_of("m,n,k\n\"" + std::string(5000, 'x') + "\",1,1\n");
  EXPECT_LT(message.size(), 200u);
  EXPECT_EQ(message_of("m,n,k\n\"a\nb\",1,1\n").find('\n'), std::string::npos);
}

TEST(ShapeList, WrittenListsReadBack) {
  Shapes shapes{{{1, 2, 3}, "plain", 80},        {{4, 5, 6}, "qkv fused, 256 tokens", 0.1},
                {{7, 8, 9}, "say \"x\"", 1e-9},  {{10, 11, 12}, "", 1},
                {{13, 14, 15}, " padded ", 1e9}, {{2147483647, 1, 1}, "caf\xc3\xa9", 3.141592653589793}};
  EXPECT_EQ(parse(to_csv(shapes)), shapes);
  EXPECT_EQ(to_csv(Shapes{{{1, 2, 3}, "a, b", 80}}), "m,n,k,name,weight\n1,2,3,\"a, b\",80\n");
}

TEST_F(ShapeFile, ReadsAFile) {
  EXPECT_EQ(read_shape_list(write("\xef\xbb\xbfm,n,k,name\r\n1,2,3,caf\xc3\xa9\r\n")),
            (Shapes{{{1, 2, 3}, "caf\xc3\xa9", 1}}));
  EXPECT_EQ(message_of(write("\xef\xbb\xbf")),
            "/list.csv:1: the shape list is empty: give a header 'm,n,k,name,weight' and one line a shape");
}

TEST_F(ShapeFile, RefusesWhatIsNoTextFile) {
  EXPECT_EQ(message_of(folder_ / "none.csv"),
            "/none.csv: cannot read the shape list: No such file or directory");
  EXPECT_EQ(message_of(folder_), ": is a folder: name the shape list in it");
  EXPECT_EQ(message_of(""), "no shape list named: give the path of a file");
  EXPECT_EQ(message_of(write(std::string_view("m,n,k\n1,2\0,3\n", 13))),
            "/list.csv: is not a text file (it has a byte 0x00): expected a shape list");
  EXPECT_EQ(message_of(write("\x7f"
                             "ELF")),
            "/list.csv: is not a text file (it has a byte 0x7f): expected a shape list");
  EXPECT_EQ(message_of(write(std::string_view("\xff\xfem\0,\0", 6))),
            "/list.csv: is UTF-16: save the shape list as UTF-8");
  for (std::string_view bad :
       {"caf\xe9", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xe0\x80\x80"})
    EXPECT_EQ(message_of(write("m,n,k,name\n1,2,3," + std::string(bad))),
              "/list.csv:2: is not UTF-8: save the shape list as UTF-8");
  EXPECT_EQ(message_of("/dev/zero"), "/dev/zero: is larger than 64 MiB: not a shape list");
}

}  // namespace
}  // namespace gemmtune
