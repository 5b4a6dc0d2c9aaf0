#include "programs/benchmark/measure/caches.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/text.hpp"

namespace gpumeter::benchmark {
namespace {

/// "266240K"; 0: no such text.
std::size_t size_in(const std::filesystem::path& file) {
  std::string text;
  std::getline(std::ifstream(file), text);
  std::string_view rest = text;
  const auto kibibytes = take_number<std::size_t>(rest);
  return kibibytes && rest == "K" ? *kibibytes << 10U : 0;
}

}  // namespace

std::size_t size_above_caches(const std::string& sysfs) {
  constexpr std::size_t kLeast = std::size_t{64} << 20U;
  std::size_t largest = 0;
  std::error_code failed;
  for (const auto& processor : std::filesystem::directory_iterator(sysfs + "/devices/system/cpu", failed)) {
    std::error_code none;
    for (const auto& cache : std::filesystem::directory_iterator(processor.path() / "cache", none)) {
      largest = std::max(largest, size_in(cache.path() / "size"));
    }
  }
  return std::max(kLeast, largest / 4 * 5);
}

}  // namespace gpumeter::benchmark
