#include "collectors/intel/pmu/text.hpp"

#include <gtest/gtest.h>

namespace gpumeter::intel::pmu {
namespace {

std::optional<std::uint64_t> placed(std::string_view field, std::uint64_t value) {
  const std::optional<Field> parsed = parse_field(field);
  return parsed ? parsed->place(value) : std::nullopt;
}

TEST(PmuField, PlacesAValueInItsBits) {
  EXPECT_EQ(placed("config:0-11\n", 2), 2U);
  EXPECT_EQ(placed("config:20-27\n", 4), 4U << 20);
  EXPECT_EQ(placed("config:60-63\n", 1), std::uint64_t{1} << 60);
  EXPECT_EQ(placed("config:0-63\n", ~std::uint64_t{0}), ~std::uint64_t{0});
  EXPECT_EQ(placed("config:0-3,8-11", 0x21), 0x201U);
  EXPECT_EQ(placed("config:5", 1), 32U);
}

TEST(PmuField, RefusesAValueThatDoesNotFitAndATextThatIsNone) {
  EXPECT_EQ(placed("config:12-19", 256), std::nullopt);
  for (const char* const text : {"", "config", "config:", "config1:0-3", "config:9-3", "config:0-64",
                                 "config:0-", "config:a", "config:0,1,2,3,4"}) {
    EXPECT_FALSE(parse_field(text)) << text;
  }
}

TEST(PmuEvent, HasTerms) {
  EXPECT_EQ(term_of("event=0x02\n", "event"), 2U);
  EXPECT_EQ(term_of("config=0x100003", "config"), 0x100003U);
  EXPECT_EQ(term_of("gt=1,event=17", "event"), 17U);
  EXPECT_EQ(term_of("event=0x02", "config"), std::nullopt);
  EXPECT_EQ(term_of("event=0xzz", "event"), std::nullopt);
  EXPECT_EQ(term_of("", "event"), std::nullopt);
}

TEST(PmuCpus, TheFirst) {
  EXPECT_EQ(first_cpu("0\n"), 0);
  EXPECT_EQ(first_cpu("4-7,12\n"), 4);
  EXPECT_EQ(first_cpu("3,5"), 3);
  EXPECT_EQ(first_cpu(""), std::nullopt);
  EXPECT_EQ(first_cpu("-1"), std::nullopt);
  EXPECT_EQ(first_cpu("0x1"), std::nullopt);
}

TEST(PmuEvent, OfAnEngine) {
  const std::optional<EngineName> engine = parse_busy_event("vcs1-busy");
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->engine_class, "vcs");
  EXPECT_EQ(engine->instance, 1U);
  for (const char* const name : {"rcs0-wait", "busy", "-busy", "0-busy", "rcs-busy", "rcs0.unit"}) {
    EXPECT_FALSE(parse_busy_event(name)) << name;
  }
}

}  // namespace
}  // namespace gpumeter::intel::pmu
