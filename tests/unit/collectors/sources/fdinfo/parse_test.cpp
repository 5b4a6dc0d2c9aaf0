#include "collectors/sources/fdinfo/parse.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace gpumeter::fdinfo
