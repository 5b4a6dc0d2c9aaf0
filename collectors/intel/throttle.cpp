#include "collectors/intel/throttle.hpp"

#include <string>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::intel {
namespace {

constexpr std::string_view kPrefix = "reason_";
constexpr std::size_t kLongest = 512;  // a few dozen words

bool is_reason(std::string_view name) noexcept { return name != "status" && !name.empty(); }

}  // namespace

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
