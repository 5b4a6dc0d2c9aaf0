#include "collectors/files/sleep.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "collectors/sources/pci.hpp"

namespace gpumeter::files {
namespace {

constexpr std::size_t kWord = 32;  // the longest word is "unsupported"

struct Word {
  std::array<char, kWord> buffer{};
  sysfs::Bytes bytes{0, ReadStatus::unsupported};

  explicit Word(const sysfs::File& file) noexcept : bytes(file.read(buffer)) {}
  std::string_view text() const noexcept { return sysfs::trimmed({buffer.data(), bytes.size}); }
};

/// .../drm/card0/card0-DP-1/dpms of all connectors.
std::vector<sysfs::File> connectors_of(const std::string& card_folder) {
  std::vector<sysfs::File> files;
  for (const std::string& card : sysfs::list(card_folder + "/drm")) {
    if (!card.starts_with("card")) continue;
    for (const std::string& name : sysfs::list(card_folder + "/drm/" + card)) {
      if (!name.starts_with(card + "-")) continue;
      sysfs::File file(card_folder + "/drm/" + card + "/" + name + "/dpms");
      if (file.status() == ReadStatus::ok) files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace

SleepPolicy::Verdict SleepPolicy::decide(Nanoseconds now, const PowerState& state) noexcept {
  if (state.suspended) {
    slept_ = true;
    return Verdict::rest;
  }
  const bool woken = std::exchange(slept_, false);  // woken by another program, so something runs
  if (woken || !state.may_suspend || !stirred_at_) stir(now);
  if (!look_at_) {
    if (now - *stirred_at_ < kQuiet) return Verdict::read;
    delay_ = state.delay;
    look_at_ = now + delay_ + kSlack;
  }
  return now < *look_at_ ? Verdict::rest : Verdict::look;
}

void SleepPolicy::stir(Nanoseconds now) noexcept {
  stirred_at_ = now;
  look_at_.reset();
}

// The kernel counts a look as a use: with a long delay, one look a minute would keep the device awake.
void SleepPolicy::looked(Nanoseconds now) noexcept { look_at_ = now + std::max(kLookEvery, delay_ + kSlack); }

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
  if (state.suspended || Word(control_).text() != "auto") return state;
  // Without a delay file the driver lets its device sleep at once; reading the file then fails.
  const Sample delay = delay_.read_integer();
  const double milliseconds = delay.status == ReadStatus::ok ? delay.value : 0;
  state.may_suspend = milliseconds >= 0;  // a negative delay keeps the device awake (runtime_pm.rst)
  constexpr double kLongest = 24 * 3600 * 1000.0;
  if (state.may_suspend)
    state.delay = std::chrono::milliseconds(static_cast<std::int64_t>(std::min(milliseconds, kLongest)));
  return state;
}

Screens::Screens(const std::string& card_folder) : dpms_(connectors_of(card_folder)) {}

bool Screens::any_on() const noexcept {
  return std::ranges::any_of(dpms_, [](const sysfs::File& dpms) { return Word(dpms).text() == "On"; });
}

}  // namespace gpumeter::files
