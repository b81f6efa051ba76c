// Runs tests/data/cli/*.test: each is a session with the real binary in an empty folder
// (tests/data/cli/README.md). Beside what a transcript says, every command is held to what holds for all: one
// line for wrong usage, nothing on stdout then, and JSON and CSV that parse.
#include <CLI/App.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/tool/shell.h"
#include "tool/command.h"

namespace gemmtune {
namespace {

namespace fs = std::filesystem;

struct Step {
  int line = 0;
  std::string command;
  int status = 0;
  std::vector<std::string> out, err;
};

struct Transcript {
  std::map<std::string, std::string> files;
  std::vector<Step> steps;
};

Transcript parse_transcript(const fs::path& path) {
  Transcript transcript;
  std::string file;
  int number = 0;
  for (const std::string& line : lines_of(read_file(path))) {
    ++number;
    auto rest = [&](size_t from) { return line.size() > from ? line.substr(from) : ""; };
    bool in_step = !transcript.steps.empty();
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("file ")) {
      file = rest(5);
      transcript.files[file] = "";
    } else if (line[0] == '|' && !file.empty()) {
      transcript.files[file] += rest(2) + "\n";
    } else if (line.starts_with("$ ")) {
      transcript.steps.push_back({number, rest(2), 0, {}, {}});
    } else if (line[0] == '>' && in_step) {
      transcript.steps.back().out.push_back(rest(2));
    } else if (line[0] == '!' && in_step) {
      transcript.steps.back().err.push_back(rest(2));
    } else if (line[0] == '=' && in_step) {
      transcript.steps.back().status = std::stoi(rest(2));
    } else {
      ADD_FAILURE() << path.string() << ":" << number << ": cannot read '" << line << "'";
    }
  }
  return transcript;
}

std::vector<fs::path> transcript_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(GEMMTUNE_SOURCE_DIR "/tests/data/cli"))
    if (entry.path().extension() == ".test") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// A pattern that is "{...}" alone stands for any number of lines.
bool match_lines(std::span<const std::string> patterns, std::span<const std::string> lines) {
  if (patterns.empty()) return lines.empty();
  if (patterns[0] == "{...}") {
    for (size_t skip = 0; skip <= lines.size(); ++skip)
      if (match_lines(patterns.subspan(1), lines.subspan(skip))) return true;
    return false;
  }
  return !lines.empty() && matches(patterns[0], lines[0]) &&
         match_lines(patterns.subspan(1), lines.subspan(1));
}

/// Fields of a CSV line. Quoted fields may hold commas and doubled quotes.
std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  if (quoted) fields.emplace_back("unterminated quote");
  return fields;
}

void check_csv(const std::string& text) {
  size_t columns = 0;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("#")) continue;
    std::vector<std::string> fields = csv_fields(line);
    if (columns == 0) {
      columns = fields.size();
      EXPECT_EQ(std::set<std::string>(fields.begin(), fields.end()).size(), columns)
          << "two columns of one name";
    }
    EXPECT_EQ(fields.size(), columns) << line;
  }
  EXPECT_GT(columns, 1u);
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// A command line without shell around it: nothing but gemmtune's own two streams.
bool plain(const std::string& command) {
  return command.find_first_of("|;&>") == std::string::npos && has(command, "gemmtune ");
}

class TranscriptTest : public testing::TestWithParam<fs::path> {};

TEST_P(TranscriptTest, Holds) {
  Transcript transcript = parse_transcript(GetParam());
  ASSERT_FALSE(transcript.steps.empty());
  Shell shell;
  make_winners(shell.path("winners.db"));
  for (const auto& [name, text] : transcript.files) write_file(shell.path(name), text);
  for (const Step& step : transcript.steps) {
    SCOPED_TRACE(fmt::format("{}:{}: {}", GetParam().string(), step.line, step.command));
    Ran ran = shell.run(step.command);
    EXPECT_EQ(ran.status, step.status) << "stdout:\n" << ran.out << "stderr:\n" << ran.err;
    EXPECT_TRUE(match_lines(step.out, lines_of(ran.out))) << "stdout was:\n" << ran.out;
    EXPECT_TRUE(match_lines(step.err, lines_of(ran.err))) << "stderr was:\n" << ran.err;
    EXPECT_FALSE(has(ran.err, "\033")) << "terminal codes without a terminal";
    if (!plain(step.command)) continue;
    if (ran.status == kWrongUsage) {
      EXPECT_EQ(ran.out, "");
      EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
      EXPECT_TRUE(ran.err.starts_with("gemmtune: ")) << ran.err;
    }
    if (ran.status != kDone && ran.status != kNoWinner) continue;
    if (has(step.command, "--format json")) {
      EXPECT_TRUE(nlohmann::json::accept(ran.out)) << ran.out;
    }
    if (has(step.command, "--format csv")) check_csv(ran.out);
  }
}

INSTANTIATE_TEST_SUITE_P(Cli, TranscriptTest, testing::ValuesIn(transcript_files()),
                         [](const auto& info) { return info.param.stem().string(); });

/// "sweep", "db info": every command there is, as the binary declares them.
std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    CLI::App app("", command.name);
    int status = 0;
    command.declare(app, status);
    std::vector<CLI::App*> subs = app.get_subcommands({});
    if (subs.empty()) names.emplace_back(command.name);
    for (const CLI::App* sub : subs) names.push_back(fmt::format("{} {}", command.name, sub->get_name()));
  }
  return names;
}

TEST(TranscriptCoverage, EveryCommandHasTranscripts) {
  std::map<std::string, std::map<int, int>> count;
  for (const fs::path& path : transcript_files())
    for (const Step& step : parse_transcript(path).steps)
      for (const std::string& name : command_names())
        if (has(step.command + " ", "gemmtune " + name + " ")) ++count[name][step.status];
  std::string table = fmt::format("{:<10}", "command");
  const std::pair<int, const char*> kStatuses[] = {
      {kDone, "done"}, {kEnvironmentFailed, "environment"}, {kWrongUsage, "usage"}, {kNoWinner, "no winner"}};
  for (auto [status, title] : kStatuses) table += fmt::format("  {:>11}", title);
  for (const std::string& name : command_names()) {
    table += fmt::format("\n{:<10}", name);
    for (auto [status, title] : kStatuses) table += fmt::format("  {:>11}", count[name][status]);
    EXPECT_GT(count[name][kDone], 0) << name << " has no transcript that succeeds";
    EXPECT_GT(count[name][kWrongUsage], 0) << name << " has no transcript of wrong usage";
  }
  fmt::print("transcripts by command and exit status\n{}\n", table);
}

TEST(Help, FitsAScreenAndHasAnExample) {
  Shell shell;
  std::vector<std::string> names = command_names();
  names.insert(names.end(), {"", "db"});
  for (const std::string& name : names) {
    SCOPED_TRACE("gemmtune " + name + " --help");
    Ran ran = shell.run("gemmtune " + name + " --help");
    EXPECT_EQ(ran.status, kDone);
    EXPECT_EQ(ran.err, "");
    std::vector<std::string> lines = lines_of(ran.out);
    EXPECT_LE(lines.size(), 40u);
    for (const std::string& line : lines) EXPECT_LE(line.size(), 100u) << line;
    size_t example = ran.out.find("Example:\n");
    if (name.empty()) continue;
    ASSERT_NE(example, std::string::npos);
    EXPECT_TRUE(ran.out.substr(example + 9).starts_with("  gemmtune " + name)) << ran.out;
  }
}

/// An example that does not parse is worse than none. What it needs may be missing, so only wrong usage
/// counts.
TEST(Help, ExamplesParse) {
  Shell shell;
  fs::create_directory_symlink(GEMMTUNE_SOURCE_DIR "/examples", shell.work() / "examples");
  fs::copy_file(GEMMTUNE_SOURCE_DIR "/tests/data/model_configs/llama-3.1-70b.json",
                shell.work() / "config.json");
  for (const Command& command : commands()) {
    if (std::string_view(command.name) == "sweep") continue;  // its transcripts run it
    Ran ran = shell.run(fmt::format("export GEMMTUNE_NVRTC=$FAKE_NVRTC; {}", command.example));
    EXPECT_NE(ran.status, kWrongUsage) << command.example << "\n" << ran.err;
  }
}

}  // namespace
}  // namespace gemmtune
