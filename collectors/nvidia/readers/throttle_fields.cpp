#include "collectors/nvidia/readers/throttle_fields.hpp"

#include <utility>

#include "base/text.hpp"

namespace gpumeter::nvidia {
namespace {

using Version = std::pair<unsigned, unsigned>;

// nvml.h 12.9 and 13.0.39 have the earlier ids, 12.8 has neither, 13.0.87 and later have the new ones; so
// have nvidia-ml-py 12.575.51 and 13.580.65 the earlier and 13.580.82 the new ones.
constexpr Version kFirstEarlier = {575, 0};
constexpr Version kLastEarlier = {580, 65};
constexpr Version kFirstNew = {580, 82};
constexpr unsigned kFirstMoved = 269;
constexpr unsigned kLastMoved = 273;
constexpr unsigned kMovedBy = 18;

/// "580.95.05" is {580, 95}.
Version version_of(std::string_view text) noexcept {
  const auto first = take_number<unsigned>(text);
  text.remove_prefix(std::min<std::size_t>(1, text.size()));
  const auto second = take_number<unsigned>(text);
  return {first.value_or(0), second.value_or(0)};
}

}  // namespace

unsigned throttle_field(unsigned field, std::string_view driver_version) noexcept {
  const Version version = version_of(driver_version);
  if (field < kFirstMoved || field > kLastMoved || version < kFirstEarlier || version >= kFirstNew)
    return field;
  return version <= kLastEarlier ? field - kMovedBy : 0;
}

}  // namespace gpumeter::nvidia
