#include "programs/benchmark/matrix.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace gpumeter::benchmark {
namespace {

constexpr std::size_t kSize = 96;

/// The product of two matrices by rows, in fp32. `at` returns an element of a factor.
template <class At>
std::vector<float> product(const std::vector<std::byte>& a, const std::vector<std::byte>& b, At at) {
  std::vector<float> c(kSize * kSize);
  for (std::size_t row = 0; row < kSize; ++row) {
    for (std::size_t column = 0; column < kSize; ++column) {
      for (std::size_t k = 0; k < kSize; ++k)
        c[row * kSize + column] += at(a, row * kSize + k) * at(b, k * kSize + column);
    }
  }
  return c;
}

MatrixView sums(const std::vector<float>& c) {
  return {reinterpret_cast<const std::byte*>(c.data()), Element::fp32, kSize, kSize, 1};
}

TEST(BenchmarkVerifyTest, FindsEachWrongElement) {
  const auto a = normal_elements(Element::fp32, kSize * kSize, 1);
  const auto b = normal_elements(Element::fp32, kSize * kSize, 2);
  const auto right = product(a, b, [](const std::vector<std::byte>& matrix, std::size_t place) {
    float value = 0;
    std::memcpy(&value, &matrix[place * sizeof value], sizeof value);
    return value;
  });
  const auto check = [&](const std::vector<float>& c) {
    return wrong_product(by_rows(a, Element::fp32, kSize), by_rows(b, Element::fp32, kSize), sums(c),
                         kFp32Rounding);
  };
  EXPECT_EQ(check(right), std::nullopt);
  for (const std::size_t place : {std::size_t{0}, kSize * kSize / 2 + 5, kSize * kSize - 1}) {
    auto wrong = right;
    wrong[place] += 0.01F;
    ASSERT_NE(check(wrong), std::nullopt);
    EXPECT_NE(check(wrong)->find("row " + std::to_string(place / kSize) + " of 96"), std::string::npos);
  }
  EXPECT_NE(check(std::vector<float>(right.size(), std::numeric_limits<float>::quiet_NaN())), std::nullopt);
  EXPECT_NE(check(std::vector<float>(right.size())), std::nullopt);
}

TEST(BenchmarkElementTest, HalvesAndBfloats) {
  // IEEE 754 binary16: one, the largest, the smallest normal and subnormal number, a tie to even, an
  // overflow.
  EXPECT_EQ(to_half(1.0F), 0x3c00);
  EXPECT_EQ(to_half(-65504.0F), 0xfbff);
  EXPECT_EQ(to_half(6.103515625e-05F), 0x0400);
  EXPECT_EQ(to_half(5.9604644775390625e-08F), 0x0001);
  EXPECT_EQ(to_half(1.00048828125F), 0x3c00);
  EXPECT_EQ(to_half(1e6F), 0x7c00);
  for (unsigned bits = 0; bits < 0x7c00; ++bits)
    ASSERT_EQ(to_half(from_half(static_cast<std::uint16_t>(bits))), bits);
  EXPECT_EQ(to_bfloat(1.0F), 0x3f80);
  EXPECT_EQ(to_bfloat(1.00390625F), 0x3f80);  // a tie to even
  EXPECT_TRUE(std::isnan(from_bfloat(to_bfloat(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(BenchmarkElementTest, EveryTypeHoldsTheSameNormalNumbers) {
  constexpr std::size_t kCount = 4096;
  const std::vector<double> one{1};
  const auto value = [&](Element element, std::size_t i) {
    const auto all = normal_elements(element, i + 1, 7);
    return times({&all[i * size_of(element)], element, 1, 1, 1}, one)[0];
  };
  for (const std::size_t i : {0U, 1U, 100U, 4000U}) {
    EXPECT_EQ(value(Element::fp64, i), value(Element::fp32, i));
    EXPECT_EQ(value(Element::fp16, i), value(Element::fp32, i));
    EXPECT_EQ(value(Element::bf16, i), value(Element::fp32, i));
  }
  const auto all = normal_elements(Element::fp32, kCount, 7);
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    float element = 0;
    std::memcpy(&element, &all[i * sizeof element], sizeof element);
    sum += static_cast<double>(element);
    squares += static_cast<double>(element) * static_cast<double>(element);
  }
  EXPECT_NEAR(sum / kCount, 0, 0.1);
  EXPECT_NEAR(squares / kCount, 1, 0.1);
}

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

TEST(BenchmarkFp8Test, AProductThatIsAQuarterOffIsWrong) {
  const auto a = normal_elements(Element::e4m3, kSize * kSize, 1);
  const auto b = normal_elements(Element::e4m3, kSize * kSize, 2);
  auto c = product(a, b, [](const std::vector<std::byte>& matrix, std::size_t place) {
    return from_fp8(Fp8::e4m3, std::to_integer<std::uint8_t>(matrix[place]));
  });
  const auto check = [&] {
    return wrong_product(by_rows(a, Element::e4m3, kSize), by_rows(b, Element::e4m3, kSize), sums(c), kExact);
  };
  EXPECT_EQ(check(), std::nullopt);
  c[5 * kSize + 7] += 0.25F;
  EXPECT_EQ(check(), "row 5 of 96 differs by 0.25 from the right product; 0.125 is allowed");
}

}  // namespace
}  // namespace gpumeter::benchmark
