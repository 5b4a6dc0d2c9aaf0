#include "collectors/sources/fdinfo/client.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "tests/fakes/places.hpp"

namespace gpumeter::fdinfo {
namespace {

TEST(FdinfoParse, AllKeysOfTheGrammar) {
  const Text text = parse(
      "pos:\t0\nflags:\t0100002\n"
      "drm-driver:\txe\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t17\ndrm-client-name:\tmy app\n"
      "drm-engine-video:\t5 ns\ndrm-engine-video-enhance: \t6 ns\ndrm-engine-capacity-video:\t2\n"
      "drm-cycles-rcs:   7  \ndrm-total-cycles-rcs:\t70\ndrm-maxfreq-rcs:\t3 KHz\ndrm-curfreq-rcs:\t4 MHz\n"
      "drm-total-vram0:\t1027\ndrm-shared-vram0:\t2 KiB\ndrm-resident-vram0:\t3 MiB\n"
      "drm-purgeable-vram0:\t4 B\ndrm-active-vram0:\t0\ndrm-memory-gtt:\t5 GiB\n"
      "amd-evicted-vram:\t6 KiB\n");
  EXPECT_EQ(text.driver, "xe");
  EXPECT_EQ(text.device, "0000:03:00.0");
  EXPECT_EQ(text.client_id, 17u);
  EXPECT_EQ(text.client_name, "my app");
  EXPECT_EQ(
      text.engines,
      (std::vector<Engine>{
          {.name = "video", .busy_ns = 5, .capacity = 2},
          {.name = "video-enhance", .busy_ns = 6},
          {.name = "rcs", .cycles = 7, .total_cycles = 70, .max_hertz = 3000, .current_hertz = 4000000}}));
  EXPECT_EQ(
      text.regions,
      (std::vector<Region>{
          {.name = "vram0", .total = 1027, .shared = 2048, .resident = 3 << 20, .purgeable = 4, .active = 0},
          {.name = "gtt", .alias = 5ULL << 30}}));
  EXPECT_EQ(text.others,
            (std::vector<OtherKey>{{"pos", "0"}, {"flags", "0100002"}, {"amd-evicted-vram", "6 KiB"}}));
  EXPECT_EQ(parse_bytes(text.others[2].value), 6144u);
  EXPECT_EQ(text.malformed, 0u);
}

TEST(FdinfoParse, EachMalformedLineIsCountedAndHasNoValue) {
  for (const char* const line : {"drm-client-id: x\n",
                                 "drm-client-id: -1\n",
                                 "drm-client-id:\n",
                                 "drm-driver:\n",
                                 "drm-pdev: \n",
                                 "drm-engine-a: 1 us\n",
                                 "drm-engine-a:\n",
                                 "drm-engine-: 1 ns\n",
                                 "drm-engine-capacity-a: 0\n",
                                 "drm-engine-capacity-a: 2 ns\n",
                                 "drm-cycles-a: 1 Hz\n",
                                 "drm-maxfreq-a: 1 GHz\n",
                                 "drm-maxfreq-a: 18446744073709551 MHz\n",
                                 "drm-total-vram: 16384 kB\n",
                                 "drm-total-vram: bogus\n",
                                 "drm-total-vram: 1 KiB x\n",
                                 "drm-total-vram: 18446744073709551616\n",
                                 "drm-resident-vram: 18014398509481984 KiB\n",
                                 "drm-resident-syste\n",
                                 "drm-resident-vram: 12"}) {
    const Text text = parse(line);
    EXPECT_EQ(text.malformed, 1u) << line;
    EXPECT_TRUE(text.engines.empty() && text.regions.empty() && !text.client_id) << line;
    EXPECT_TRUE(text.driver.empty() && text.device.empty()) << line;
  }
}

TEST(FdinfoParse, TheFirstOfTwoEqualKeysCounts) {
  const Text text = parse(
      "drm-driver: a\ndrm-driver: b\ndrm-client-id: 1\ndrm-client-id: 2\ndrm-total-m: 1\ndrm-total-m: 2\n");
  EXPECT_EQ(text.driver, "a");
  EXPECT_EQ(text.client_id, 1u);
  EXPECT_EQ(text.regions, (std::vector<Region>{{.name = "m", .total = 1}}));
  EXPECT_EQ(text.malformed, 3u);
}

TEST(FdinfoParse, TheBiggestNumbers) {
  const Text text = parse("drm-engine-a: 18446744073709551615 ns\ndrm-total-m: 18014398509481983 KiB\n");
  EXPECT_EQ(text.engines[0].busy_ns, 18446744073709551615u);
  EXPECT_EQ(text.regions[0].total, 18446744073709550592u);
  EXPECT_EQ(text.malformed, 0u);
}

TEST(FdinfoParse, LinesOfOthersAreNoErrors) {
  const Text text = parse("# a remark\n\npos: 0\ndrm-internal-memory:\t0\nv3d-jobs-bin:\t98 jobs\nflags");
  EXPECT_EQ(text.malformed, 0u);
  EXPECT_EQ(text.others,
            (std::vector<OtherKey>{{"pos", "0"}, {"drm-internal-memory", "0"}, {"v3d-jobs-bin", "98 jobs"}}));
  EXPECT_EQ(parse("").malformed, 0u);
}

constexpr double kKiB = 1024;

TEST(FdinfoClient, ARegionCountsByItsResidentSizeOnce) {
  const ClientMemory memory = memory_of(parse(
      "drm-driver: amdgpu\ndrm-total-vram: 100 KiB\ndrm-shared-vram: 10 KiB\ndrm-resident-vram: 80 KiB\n"
      "drm-memory-vram: 80 KiB\ndrm-memory-gtt: 7 KiB\ndrm-total-gtt: 9 KiB\ndrm-shared-gtt: 8 KiB\n"
      "drm-memory-cpu: 1 KiB\ndrm-resident-doorbell: 50 KiB\ndrm-resident-gds: 50\n"));
  EXPECT_EQ(memory.device, 80 * kKiB);
  EXPECT_EQ(memory.system, 8 * kKiB);
  EXPECT_EQ(memory.shared_device, 10 * kKiB);
  EXPECT_EQ(memory.shared_system, 7 * kKiB);
}

TEST(FdinfoClient, RegionsOfIntel) {
  const ClientMemory memory = memory_of(parse(
      "drm-driver: i915\ndrm-resident-system0: 1\ndrm-resident-stolen-system0: 2\ndrm-resident-local0: 30\n"
      "drm-resident-stolen-local0: 40\n"));
  EXPECT_EQ(memory.device, 70);
  EXPECT_EQ(memory.system, 3);
  const ClientMemory tiles =
      memory_of(parse("drm-driver: xe\ndrm-resident-system: 1\ndrm-resident-gtt: 2\ndrm-resident-vram0: 30\n"
                      "drm-resident-vram1: 40\ndrm-resident-stolen: 5\n"));
  EXPECT_EQ(tiles.device, 70);
  EXPECT_EQ(tiles.system, 3);
}

TEST(FdinfoClient, ADriverWithoutResidentSizesCountsByTotals) {
  const ClientMemory memory =
      memory_of(parse("drm-driver: v3d\ndrm-total-memory: 15168 KiB\ndrm-shared-memory: 9336 KiB\n"));
  EXPECT_EQ(memory.system, 15168 * kKiB);
  EXPECT_EQ(memory.shared_system, 9336 * kKiB);
  EXPECT_EQ(memory.device, std::nullopt);
}

TEST(FdinfoClient, PanthorsOwnBuffersAreTheClients) {
  const ClientMemory memory =
      memory_of(parse("drm-driver: panthor\npanthor-resident-memory: 10 KiB\ndrm-resident-memory: 5 KiB\n"));
  EXPECT_EQ(memory.system, 15 * kKiB);
}

TEST(FdinfoClient, NoKeysAreNoMemory) {
  const ClientMemory memory = memory_of(parse("drm-driver: i915\ndrm-engine-render: 5 ns\n"));
  EXPECT_EQ(memory.device, std::nullopt);
  EXPECT_EQ(memory.system, std::nullopt);
}

TEST(FdinfoClient, EnginesCountByTimeAndOtherwiseByCycles) {
  const std::vector<EngineCount> engines = engines_of(parse(
      "drm-driver: xe\ndrm-cycles-rcs: 5\ndrm-total-cycles-rcs: 50\ndrm-cycles-vcs: 6\n"
      "drm-total-cycles-vcs: 60\ndrm-engine-capacity-vcs: 2\ndrm-cycles-other: 1\ndrm-total-cycles-other: 2\n"
      "drm-cycles-bcs: 3\n"));
  ASSERT_EQ(engines.size(), 2u);
  EXPECT_EQ(kEngineNames[engines[0].name].engine, EngineClass::graphics);
  EXPECT_TRUE(engines[0].in_cycles);
  EXPECT_EQ(engines[0].count, 5u);
  EXPECT_EQ(engines[0].total_cycles, 50u);
  EXPECT_EQ(kEngineNames[engines[1].name].engine, EngineClass::video);
  EXPECT_EQ(engines[1].capacity, 2);

  const std::vector<EngineCount> times =
      engines_of(parse("drm-driver: panfrost\ndrm-engine-fragment: 9 ns\ndrm-cycles-fragment: 3\n"));
  ASSERT_EQ(times.size(), 1u);
  EXPECT_FALSE(times[0].in_cycles);
  EXPECT_EQ(times[0].count, 9u);
  EXPECT_TRUE(
      engines_of(parse("drm-driver: i915\ndrm-engine-rcs: 9 ns\n")).empty());  // a name of another driver
}

namespace fs = std::filesystem;
using Numbers = std::map<std::string, std::uint64_t>;

fs::path samples() { return places::in_captures("fdinfo"); }

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
