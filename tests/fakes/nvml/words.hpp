#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpumeter::fake_nvml {

/// Returns NVML's number of the word: "hopper" -> 9.
std::optional<std::uint64_t> number_of_word(std::string_view text);

}  // namespace gpumeter::fake_nvml
