#include "collectors/sources/runtime_power.hpp"

#include <array>
#include <string_view>

#include "collectors/sources/pci.hpp"

namespace gpumeter {
namespace {

constexpr std::size_t kWord = 32;  // the longest word is "unsupported"

struct Word {
  std::array<char, kWord> buffer{};
  sysfs::Bytes bytes{0, ReadStatus::unsupported};

  explicit Word(const sysfs::File& file) noexcept : bytes(file.read(buffer)) {}
  std::string_view text() const noexcept { return sysfs::trimmed({buffer.data(), bytes.size}); }
};

}  // namespace

RuntimePower::RuntimePower(const std::string& device)
    : status_(device + "/power/runtime_status"),
      control_(device + "/power/control"),
      delay_(device + "/power/autosuspend_delay_ms") {}

std::optional<PowerState> RuntimePower::read() noexcept {
  for (sysfs::File* const file : {&status_, &control_, &delay_}) {
    if (file->status() != ReadStatus::ok) file->retry();
  }
  const Word status(status_);
  if (status_.status() == ReadStatus::ok && status.bytes.status == ReadStatus::gone) return std::nullopt;
  PowerState state;
  state.suspended = pci::is_suspended(status.text());
  if (state.suspended || !may_suspend()) return state;
  // Without a delay file the driver lets its device sleep at once; reading the file then fails.
  const Sample delay = delay_.read_integer();
  const double milliseconds = delay.status == ReadStatus::ok ? delay.value : 0;
  state.may_suspend = milliseconds >= 0;  // a negative delay keeps the device awake (runtime_pm.rst)
  constexpr double kLongest = 24 * 3600 * 1000.0;
  if (state.may_suspend) {
    const double delay_ms = milliseconds < kLongest ? milliseconds : kLongest;
    state.delay = std::chrono::milliseconds(static_cast<std::int64_t>(delay_ms));
  }
  return state;
}

bool RuntimePower::may_suspend() const noexcept { return Word(control_).text() == "auto"; }

}  // namespace gpumeter
