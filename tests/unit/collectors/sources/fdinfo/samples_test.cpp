// Every sample of real and documented fdinfo texts ($GPUMETER_CAPTURES/fdinfo/DRIVER/*.txt) against a second,
// simple reading of the same text.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "collectors/sources/fdinfo/client.hpp"
#include "collectors/sources/fdinfo/parse.hpp"

namespace gpumeter::fdinfo {
namespace {

namespace fs = std::filesystem;
using Numbers = std::map<std::string, std::uint64_t>;

fs::path samples() {
  const char* const captures = std::getenv("GPUMETER_CAPTURES");
  return (captures != nullptr ? fs::path(captures) : fs::path(GPUMETER_TESTS_DIR) / "../../shared/captures") /
         "fdinfo";
}

std::string content(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// All drm-* numbers of a text by key, by one regular expression; `wrong` counts the lines that it rejects.
struct SimpleReading {
  explicit SimpleReading(const std::string& text) {
    static const std::regex kNumber(
        "drm-((?:engine|cycles|total|maxfreq|curfreq|shared|resident|purgeable|active|memory)-\\S+|client-id)"
        ":"
        "\\s*(\\d+)\\s*(|B|ns|Hz|KHz|MHz|KiB|MiB)\\s*");
    static const std::regex kName("drm-(driver|pdev|client-name):\\s*(\\S.*?)\\s*");
    static const std::regex kUnknown("drm-internal-memory:.*");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::smatch found;
      if (line.rfind("drm-", 0) != 0) continue;
      if (std::regex_match(line, found, kNumber)) {
        numbers[found[1]] = std::stoull(found[2]) * factor(found[3]);
      } else if (std::regex_match(line, found, kName)) {
        names[found[1]] = found[2];
      } else if (!std::regex_match(line, kUnknown)) {
        ++wrong;
      }
    }
  }
  static std::uint64_t factor(const std::string& unit) {
    const std::map<std::string, std::uint64_t> factors = {
        {"KiB", 1024}, {"MiB", 1048576}, {"KHz", 1000}, {"MHz", 1000000}};
    const auto found = factors.find(unit);
    return found == factors.end() ? 1 : found->second;
  }

  Numbers numbers;
  std::map<std::string, std::string> names;
  unsigned wrong = 0;
};

void put(Numbers& to, const std::string& key, std::optional<std::uint64_t> number) {
  if (number) to[key] = *number;
}

Numbers numbers_of(const Text& text) {
  Numbers numbers;
  put(numbers, "client-id", text.client_id);
  for (const Engine& engine : text.engines) {
    const std::string name(engine.name);
    put(numbers, "engine-" + name, engine.busy_ns);
    put(numbers, "engine-capacity-" + name, engine.capacity);
    put(numbers, "cycles-" + name, engine.cycles);
    put(numbers, "total-cycles-" + name, engine.total_cycles);
    put(numbers, "maxfreq-" + name, engine.max_hertz);
    put(numbers, "curfreq-" + name, engine.current_hertz);
  }
  for (const Region& region : text.regions) {
    const std::string name(region.name);
    put(numbers, "total-" + name, region.total);
    put(numbers, "shared-" + name, region.shared);
    put(numbers, "resident-" + name, region.resident);
    put(numbers, "purgeable-" + name, region.purgeable);
    put(numbers, "active-" + name, region.active);
    put(numbers, "memory-" + name, region.alias);
  }
  return numbers;
}

TEST(FdinfoSamples, EachSampleParsesToItsText) {
  if (!fs::is_directory(samples())) GTEST_SKIP() << samples() << " does not exist";
  unsigned count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(samples())) {
    if (entry.path().extension() != ".txt") continue;
    SCOPED_TRACE(entry.path());
    const std::string text = content(entry.path());
    const SimpleReading expected(text);
    const Text parsed = parse(text);
    EXPECT_EQ(numbers_of(parsed), expected.numbers);
    EXPECT_EQ(parsed.malformed, expected.wrong);
    const auto name = [&](const char* key) {
      const auto found = expected.names.find(key);
      return found == expected.names.end() ? std::string() : found->second;
    };
    EXPECT_EQ(parsed.driver, name("driver"));
    EXPECT_EQ(parsed.device, name("pdev"));
    EXPECT_EQ(parsed.client_name, name("client-name"));
    ++count;
  }
  EXPECT_GT(count, 0u);
  RecordProperty("samples", static_cast<int>(count));
}

TEST(FdinfoSamples, OnlyTheEdgeCasesAreMalformed) {
  if (!fs::is_directory(samples())) GTEST_SKIP() << samples() << " does not exist";
  for (const auto& entry : fs::recursive_directory_iterator(samples())) {
    if (entry.path().extension() != ".txt") continue;
    const bool is_edge = entry.path().parent_path().filename() == "edge";
    EXPECT_EQ(parse(content(entry.path())).malformed > 0, is_edge) << entry.path();
  }
}

/// The engines of the kernel's drivers in the samples have a class, except those that are no engines of a
/// client.
TEST(FdinfoSamples, EachEngineHasAClass) {
  if (!fs::is_directory(samples())) GTEST_SKIP() << samples() << " does not exist";
  for (const auto& entry : fs::recursive_directory_iterator(samples())) {
    if (entry.path().extension() != ".txt") continue;
    const std::string text = content(entry.path());
    const Text parsed = parse(text);
    std::size_t classified = 0;
    for (const Engine& engine : parsed.engines) {
      const bool has_none = engine.name == "cache_clean" || engine.name == "cpu";
      if (!has_none && (engine.busy_ns || engine.total_cycles)) ++classified;
    }
    if (parsed.driver.empty()) continue;
    EXPECT_EQ(engines_of(parsed).size(), classified) << entry.path();
  }
}

}  // namespace
}  // namespace gpumeter::fdinfo
