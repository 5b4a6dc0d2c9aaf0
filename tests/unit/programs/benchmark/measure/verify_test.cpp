#include "programs/benchmark/measure/verify.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gpumeter::benchmark {
namespace {

constexpr std::size_t kSize = 96;

/// The product of two matrices by rows, in fp32.
std::vector<std::byte> product(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  const auto at = [](const std::vector<std::byte>& matrix, std::size_t place) {
    float value = 0;
    std::memcpy(&value, &matrix[place * sizeof value], sizeof value);
    return value;
  };
  std::vector<std::byte> c(a.size());
  for (std::size_t row = 0; row < kSize; ++row) {
    for (std::size_t column = 0; column < kSize; ++column) {
      float sum = 0;
      for (std::size_t k = 0; k < kSize; ++k) sum += at(a, row * kSize + k) * at(b, k * kSize + column);
      std::memcpy(&c[(row * kSize + column) * sizeof sum], &sum, sizeof sum);
    }
  }
  return c;
}

TEST(BenchmarkVerifyTest, FindsEachWrongElement) {
  const auto a = normal_elements(Element::fp32, kSize * kSize, 1);
  const auto b = normal_elements(Element::fp32, kSize * kSize, 2);
  const auto right = product(a, b);
  const auto check = [&](const std::vector<std::byte>& c) {
    return wrong_product(by_rows(a, Element::fp32, kSize), by_rows(b, Element::fp32, kSize),
                         by_rows(c, Element::fp32, kSize), kFp32Rounding);
  };
  EXPECT_EQ(check(right), std::nullopt);
  for (const std::size_t place : {std::size_t{0}, kSize * kSize / 2 + 5, kSize * kSize - 1}) {
    auto wrong = right;
    float value = 0;
    std::memcpy(&value, &wrong[place * sizeof value], sizeof value);
    value += 0.01F;
    std::memcpy(&wrong[place * sizeof value], &value, sizeof value);
    ASSERT_NE(check(wrong), std::nullopt);
    EXPECT_NE(check(wrong)->find("row " + std::to_string(place / kSize) + " of 96"), std::string::npos);
  }
  EXPECT_NE(check(std::vector<std::byte>(right.size(), std::byte{0xff})), std::nullopt);  // NaN
  EXPECT_NE(check(std::vector<std::byte>(right.size())), std::nullopt);
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

}  // namespace
}  // namespace gpumeter::benchmark
