#include "exporter/text/format.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

namespace gpumeter {
namespace {

std::string unzipped(std::string bytes, std::size_t room) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);  // gzip only
  std::string out(room, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST(Gzip, GivesBackWhatWentIn) {
  std::string page;
  for (int i = 0; i < 2000; ++i) page += "gpu_power_watts{gpu=\"" + std::to_string(i % 8) + "\"} 250\n";
  const auto compressed = gzip(page);
  ASSERT_TRUE(compressed);
  EXPECT_LT(compressed->size() * 10, page.size());
  EXPECT_EQ(unzipped(*compressed, page.size() + 1), page);
}

TEST(Gzip, TakesNothingAndWhatCannotBeCompressed) {
  EXPECT_EQ(unzipped(*gzip(""), 1), "");
  std::mt19937 random(1);
  std::string noise(100'000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  EXPECT_EQ(unzipped(*gzip(noise), noise.size() + 1), noise);
}

}  // namespace
}  // namespace gpumeter
