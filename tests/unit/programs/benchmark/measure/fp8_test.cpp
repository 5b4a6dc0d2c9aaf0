#include "programs/benchmark/measure/fp8.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "programs/benchmark/measure/verify.hpp"

namespace gpumeter::benchmark {
namespace {

constexpr std::size_t kSize = 64;

TEST(BenchmarkFp8Test, OcpNumbers) {
  // OCP OFP8 1.0, table 2: one, the largest, the smallest normal and subnormal number; ties to even.
  EXPECT_EQ(to_fp8(Fp8::e4m3, 1.0F), 0x38);
  EXPECT_EQ(to_fp8(Fp8::e4m3, -448.0F), 0xfe);
  EXPECT_EQ(to_fp8(Fp8::e4m3, 1e6F), 0x7e);
  EXPECT_EQ(to_fp8(Fp8::e4m3, 0.015625F), 0x08);
  EXPECT_EQ(to_fp8(Fp8::e4m3, 0.001953125F), 0x01);
  EXPECT_EQ(to_fp8(Fp8::e4m3, 1.0625F), 0x38);
  EXPECT_EQ(to_fp8(Fp8::e4m3, 1.9375F), 0x40);  // carries into the exponent
  EXPECT_EQ(to_fp8(Fp8::e4m3, -0.0F), 0x80);
  EXPECT_TRUE(std::isnan(from_fp8(Fp8::e4m3, 0xff)));
}

TEST(BenchmarkFp8Test, FnuzNumbers) {
  // HIP, "Low precision floating point types": bias 8, at most 240, no negative zero.
  EXPECT_EQ(to_fp8(Fp8::e4m3_fnuz, 1.0F), 0x40);
  EXPECT_EQ(to_fp8(Fp8::e4m3_fnuz, -240.0F), 0xff);
  EXPECT_EQ(to_fp8(Fp8::e4m3_fnuz, 300.0F), 0x7f);
  EXPECT_EQ(to_fp8(Fp8::e4m3_fnuz, 0.0009765625F), 0x01);
  EXPECT_EQ(to_fp8(Fp8::e4m3_fnuz, -0.0F), 0x00);
  EXPECT_TRUE(std::isnan(from_fp8(Fp8::e4m3_fnuz, 0x80)));
}

TEST(BenchmarkFp8Test, EachByteIsItsOwnValue) {
  for (const Fp8 encoding : {Fp8::e4m3, Fp8::e4m3_fnuz}) {
    for (unsigned bits = 0; bits < 256; ++bits) {
      const float value = from_fp8(encoding, static_cast<std::uint8_t>(bits));
      if (std::isnan(value)) continue;
      ASSERT_EQ(to_fp8(encoding, value), bits);
    }
  }
}

TEST(BenchmarkFp8Test, BothEncodingsHoldHalfSteps) {
  EXPECT_EQ(half_steps(0.6F), 0.5F);
  EXPECT_EQ(half_steps(-1.3F), -1.5F);
  EXPECT_EQ(half_steps(9.0F), 4.0F);
  for (float value = -4; value <= 4; value += 0.5F) {
    EXPECT_EQ(from_fp8(Fp8::e4m3, to_fp8(Fp8::e4m3, value)), value);
    EXPECT_EQ(from_fp8(Fp8::e4m3_fnuz, to_fp8(Fp8::e4m3_fnuz, value)), value);
  }
}

/// The product of two matrices by rows, in fp32.
std::vector<float> product(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  const auto at = [](const std::vector<std::byte>& matrix, std::size_t place) {
    return from_fp8(Fp8::e4m3, std::to_integer<std::uint8_t>(matrix[place]));
  };
  std::vector<float> c(a.size());
  for (std::size_t row = 0; row < kSize; ++row) {
    for (std::size_t column = 0; column < kSize; ++column) {
      for (std::size_t k = 0; k < kSize; ++k)
        c[row * kSize + column] += at(a, row * kSize + k) * at(b, k * kSize + column);
    }
  }
  return c;
}

TEST(BenchmarkFp8Test, AProductThatIsAQuarterOffIsWrong) {
  const auto a = normal_elements(Element::e4m3, kSize * kSize, 1);
  const auto b = normal_elements(Element::e4m3, kSize * kSize, 2);
  auto c = product(a, b);
  const auto check = [&] {
    const MatrixView sums{reinterpret_cast<const std::byte*>(c.data()), Element::fp32, kSize, kSize, 1};
    return wrong_product(by_rows(a, Element::e4m3, kSize), by_rows(b, Element::e4m3, kSize), sums, kExact);
  };
  EXPECT_EQ(check(), std::nullopt);
  c[5 * kSize + 7] += 0.25F;
  EXPECT_EQ(check(), "row 5 of 64 differs by 0.25 from the right product; 0.125 is allowed");
}

}  // namespace
}  // namespace gpumeter::benchmark
