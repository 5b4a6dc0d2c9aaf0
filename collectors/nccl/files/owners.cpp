#include "collectors/nccl/files/owners.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"

namespace gpumeter::nccl {
namespace {

/// The digits and letters of a UUID without its prefix: "GPU-00C0-FFEE" becomes "00c0ffee".
std::string digits_of(std::string_view uuid) {
  if (uuid.starts_with("GPU-") || uuid.starts_with("MIG-")) uuid.remove_prefix(4);
  std::string digits;
  for (const char each : uuid) {
    if (each == '-') continue;
    digits += each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
  }
  return digits;
}

/// HIP's UUID holds the letters of the card's unique_id: "3030..." is "00...". Empty: no such text.
std::string letters_of(std::string_view digits) {
  std::string letters;
  for (; digits.size() >= 2; digits.remove_prefix(2)) {
    letters += static_cast<char>(parse_number<unsigned char>(digits.substr(0, 2), 16).value_or(0));
  }
  return letters;
}

bool is_same(std::string_view file, const std::string& known) {
  const std::string wanted = digits_of(file);
  const std::string digits = digits_of(known);
  return !digits.empty() && (wanted == digits || letters_of(wanted) == digits);
}

}  // namespace

Labels GpuPlace::labels() const {
  return Labels({{"gpu", std::to_string(index)}, {"uuid", uuid}, {"partition", partition}});
}

std::optional<GpuPlace> Owners::place_of(std::string_view uuid) const {
  const auto part =
      std::ranges::find_if(parts_.partitions, [&](const auto& each) { return is_same(uuid, each.mig_uuid); });
  const bool is_part = part != parts_.partitions.end();
  const auto use = std::ranges::find_if(parts_.uses, [&](const auto& each) {
    return is_part ? each->uuid == part->place.uuid : is_same(uuid, each->uuid);
  });
  if (use == parts_.uses.end()) return std::nullopt;
  return GpuPlace{(*use)->index, (*use)->uuid, is_part ? part->place.partition : ""};
}

std::optional<RunLabels> Owners::run_of(std::uint32_t uid, const std::string& uuid) const {
  const std::string user = parts_.user_name(uid);
  if (!is_allowed(parts_.allowed, uid, user)) return std::nullopt;
  std::set<RunLabels> runs;
  for (const auto& device : parts_.uses) {
    if (!uuid.empty() && device->uuid != uuid) continue;
    for (const workloads::ProcessUse& use : device->processes) {
      if (use.uid == uid) runs.insert(parts_.run_of(use).value_or(RunLabels{user, workload_of(use)}));
    }
  }
  if (runs.empty()) return std::nullopt;
  return runs.size() == 1 ? *runs.begin() : RunLabels{user, ""};
}

}  // namespace gpumeter::nccl
