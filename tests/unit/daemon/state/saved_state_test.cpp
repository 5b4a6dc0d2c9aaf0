#include <gtest/gtest.h>

#include "daemon/state/figures_file.hpp"

namespace gpumeter {
namespace {

SavedState sample() {
  return {"0123", "boot\t1", std::chrono::seconds(5), {{"devices", "device\tGPU-1\n"}, {"runs", ""}}};
}

TEST(SavedState, ReadsBack) {
  const SavedState state = sample();
  const Result<SavedState> read = decode(encode(state));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->machine_id, state.machine_id);
  EXPECT_EQ(read->boot_id, state.boot_id);
  EXPECT_EQ(read->saved_at, state.saved_at);
  EXPECT_EQ(read->sections, state.sections);
  EXPECT_EQ(read->section("devices"), "device\tGPU-1\n");
  EXPECT_EQ(read->section("others"), "");
}

TEST(SavedState, EveryCutIsFound) {
  const std::string text = encode(sample());
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(decode(std::string_view(text).substr(0, length))) << length;
  }
}

TEST(SavedState, EveryChangedBitIsFound) {
  const std::string text = encode(sample());
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string changed = text;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode(changed)) << bit;
  }
}

}  // namespace
}  // namespace gpumeter
