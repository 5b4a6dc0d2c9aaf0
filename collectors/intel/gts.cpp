#include "collectors/intel/gts.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::intel {
namespace {

/// N of "<prefix>N".
std::optional<int> number_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return parse_number<int>(name.substr(prefix.size()));
}

bool exists(const std::string& path) { return sysfs::File(path).status() != ReadStatus::gone; }

std::string first_of(const std::string& preferred, const std::string& other) {
  return exists(preferred) ? preferred : other;
}

// gtidle/name is "gt0-rc" for render and compute, "gt1-mc" for media.
Gt xe_gt(const std::string& folder, int index) {
  const std::string freq = folder + "/freq0/";
  Gt gt{index,
        sysfs::read_text(folder + "/gtidle/name").ends_with("-mc"),
        freq + "act_freq",
        first_of(freq + "rp0_freq", freq + "max_freq"),
        folder + "/gtidle/idle_residency_ms",
        freq + "throttle",
        "reason_",
        {}};
  for (const std::string& engines : sysfs::list(folder + "/engines")) gt.engines.push_back(engines);
  return gt;
}

// With i915, only Meteor Lake and its successors have a second GT: that of media.
Gt i915_gt(const std::string& folder, int index) {
  return {index,
          index > 0,
          folder + "/rps_act_freq_mhz",
          folder + "/rps_RP0_freq_mhz",
          folder + "/rc6_residency_ms",
          folder,
          "throttle_reason_",
          {}};
}

std::vector<Gt> i915_gts(const std::string& card) {
  std::vector<Gt> gts;
  for (const std::string& name : sysfs::list(card + "/gt")) {
    if (const auto index = number_of(name, "gt")) gts.push_back(i915_gt(card + "/gt/" + name, *index));
  }
  if (gts.empty() && exists(card + "/gt_act_freq_mhz")) {
    gts.push_back({0,
                   false,
                   card + "/gt_act_freq_mhz",
                   card + "/gt_RP0_freq_mhz",
                   card + "/power/rc6_residency_ms",
                   "",
                   "",
                   {}});
  }
  return gts;
}

constexpr std::string_view kPrefix = "reason_";
constexpr std::size_t kLongest = 512;  // a few dozen words

bool is_reason(std::string_view name) noexcept { return name != "status" && !name.empty(); }

}  // namespace

std::vector<Gt> find_gts(const std::string& function) {
  std::vector<Gt> gts;
  for (const std::string& tile : sysfs::list(function)) {
    if (!number_of(tile, "tile")) continue;
    for (const std::string& name : sysfs::list(function + "/" + tile)) {
      const auto index = number_of(name, "gt");
      if (index) gts.push_back(xe_gt(function + "/" + tile + "/" + name, *index));
    }
  }
  for (const std::string& node : sysfs::list(function + "/drm")) {
    if (gts.empty() && number_of(node, "card")) gts = i915_gts(function + "/drm/" + node);
  }
  std::sort(gts.begin(), gts.end(), [](const Gt& a, const Gt& b) { return a.index < b.index; });
  return gts;
}

ThrottleMask mask_of_reason(std::string_view reason) noexcept {
  for (std::size_t i = 0; i < kThrottleReasonCount; ++i) {
    if (kThrottleReasons[i].reason == reason) return ThrottleMask{1} << i;
  }
  return ThrottleMask{1} << (kThrottleReasonCount - 1);
}

ThrottleMask active_reasons(std::string_view text) noexcept {
  ThrottleMask active = 0;
  text = sysfs::trimmed(text);
  while (!text.empty()) {
    std::string_view word = trimmed(take_until(text, ' '));
    if (word.starts_with(kPrefix)) word.remove_prefix(kPrefix.size());
    if (!word.empty() && word != "none") active |= mask_of_reason(word);
  }
  return active;
}

Throttle::Throttle(const std::vector<Gt>& gts) {
  for (const Gt& gt : gts) {
    if (!gt.throttle_folder.empty()) add(gt);
  }
}

void Throttle::add(const Gt& gt) {
  sysfs::File text(gt.throttle_folder + "/reasons");
  const bool has_text = text.status() != ReadStatus::gone;
  for (const std::string& name : sysfs::list(gt.throttle_folder)) {
    if (!name.starts_with(gt.throttle_prefix)) continue;
    const std::string_view reason = std::string_view(name).substr(gt.throttle_prefix.size());
    if (!is_reason(reason)) continue;
    const ThrottleMask mask = mask_of_reason(reason);
    known_ |= mask;
    if (!has_text) flags_.push_back({sysfs::File(gt.throttle_folder + "/" + name), mask});
  }
  if (has_text) texts_.push_back(std::move(text));
}

const Throttle::Reading& Throttle::read() noexcept {
  if (!std::exchange(is_fresh_, true)) reading_ = read_all();
  return reading_;
}

Throttle::Reading Throttle::read_all() noexcept {
  Reading reading{0, ReadStatus::ok};
  read_texts(reading);
  for (Flag& flag : flags_) {
    if (flag.file.status() != ReadStatus::ok) flag.file.retry();
    const Sample sample = flag.file.read_integer();
    if (sample.status != ReadStatus::ok) reading.status = sample.status;
    if (sample.status == ReadStatus::ok && sample.value != 0) reading.active |= flag.reason;
  }
  return reading;
}

void Throttle::read_texts(Reading& reading) noexcept {
  for (sysfs::File& file : texts_) {
    if (file.status() != ReadStatus::ok) file.retry();
    std::array<char, kLongest> buffer{};
    const sysfs::Bytes bytes = file.read(buffer);
    if (bytes.status != ReadStatus::ok) reading.status = bytes.status;
    if (bytes.status == ReadStatus::ok) reading.active |= active_reasons({buffer.data(), bytes.size});
  }
}

}  // namespace gpumeter::intel
