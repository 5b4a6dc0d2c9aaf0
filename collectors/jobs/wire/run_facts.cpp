#include "collectors/jobs/wire/run_facts.hpp"

#include <algorithm>
#include <iterator>

#include "collectors/jobs/wire/label_text.hpp"

namespace gpumeter::jobs {
namespace {

// The dtypes of ml.flops, and two that no FLOPs are counted in.
constexpr std::string_view kPrecisions[] = {"fp64", "fp32", "tf32", "fp16", "bf16",
                                            "fp8",  "int8", "fp4",  "int4", "mixed"};
constexpr std::string_view kShardings[] = {"fsdp", "hsdp", "zero1", "zero2", "zero3"};
constexpr std::size_t kMostDigits = 6;

/// One number has one spelling, so that it is one series.
bool is_size(std::string_view text) noexcept {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return text.size() <= kMostDigits && text.front() != '0' && std::ranges::all_of(text, is_digit);
}

}  // namespace

bool is_acceptable(Fact fact, std::string_view value) noexcept {
  if (value.empty()) return false;
  if (fact < Fact::precision) return true;
  if (fact == Fact::precision) return std::ranges::find(kPrecisions, value) != std::end(kPrecisions);
  if (fact == Fact::sharding) return std::ranges::find(kShardings, value) != std::end(kShardings);
  return is_size(value);
}

FactsRead read_facts(const Tags& tags) {
  FactsRead read;
  for (const auto& [fact, name] : kFactNames) {
    const std::string_view value = tags.find(name);
    if (is_acceptable(fact, value)) {
      read.facts[static_cast<std::size_t>(fact)] = label_text(value);
    } else if (!value.empty()) {
      ++read.refused;
    }
  }
  return read;
}

std::vector<Label> labels_of(const RunFacts& facts) {
  std::vector<Label> labels;
  for (const auto& [fact, name] : kFactNames) {
    const std::string& value = facts[static_cast<std::size_t>(fact)];
    if (!value.empty()) labels.push_back({std::string(name), value});
  }
  return labels;
}

}  // namespace gpumeter::jobs
