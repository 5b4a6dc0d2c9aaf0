#pragma once

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter {

/// The runtime power management of a card in a tree. inotify reports which of its files were read. A read for
/// which the driver must power up the card postpones its sleep. If the card sleeps, such a read wakes it.
class SleepyCard {
 public:
  static constexpr Nanoseconds kDelay = std::chrono::seconds(5);

  /// Makes `folder` of `tree` such a card; all its other files must exist already.
  SleepyCard(const Tree& tree, std::string folder)
      : tree_(tree), folder_(std::move(folder)), inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    if (inotify_ < 0) throw std::runtime_error("inotify_init1");
    tree_.write(folder_ + "/power/control", "auto\n");
    tree_.write(folder_ + "/power/autosuspend_delay_ms", "5000\n");
    show("active\n");
    for (const char* const below : {"", "/hwmon/hwmon1"}) {
      const int watch = inotify_add_watch(inotify_, (tree_ / (folder_ + below)).c_str(), IN_ACCESS);
      if (watch < 0) throw std::runtime_error("inotify_add_watch");
    }
  }
  ~SleepyCard() { ::close(inotify_); }
  SleepyCard(const SleepyCard&) = delete;
  SleepyCard& operator=(const SleepyCard&) = delete;

  /// Keeps the card awake, as a screen or a program that holds it open does.
  void hold(bool held) { held_ = held; }

  /// Applies the reads since the last call. `now`: the current time.
  void tick(Nanoseconds now) {
    if (take_waking_reads() > 0 || held_) {
      used_at_ = now;
      if (asleep_) ++wake_ups_;
      if (asleep_) show("active\n");
    } else if (!asleep_ && now - used_at_ >= kDelay) {
      show("suspended\n");
    }
  }

  bool asleep() const { return asleep_; }
  int wake_ups() const { return wake_ups_; }
  /// Number of ticks with reads that would wake the card.
  int waking_passes() const { return waking_passes_; }

 private:
  void show(std::string_view status) {
    asleep_ = status == "suspended\n";
    tree_.write(folder_ + "/power/runtime_status", status);
  }

  // amdgpu answers these from cached data (kernel 6.12: amdgpu_vram_mgr.c, amdgpu_pm.c). hwmon's labels and
  // the bus's own files need no access to the card at all.
  static bool wakes(std::string_view file) {
    for (const std::string_view end :
         {"_label", "_crit", "_emergency", "name", "uevent", "revision", "pwm1_max"}) {
      if (file.ends_with(end)) return false;
    }
    return !file.starts_with("mem_info_");
  }

  int take_waking_reads() {
    alignas(inotify_event) std::array<char, 4096> buffer{};
    int reads = 0;
    for (ssize_t size = 0; (size = ::read(inotify_, buffer.data(), buffer.size())) > 0;) {
      for (ssize_t at = 0; at < size;) {
        inotify_event event{};
        std::memcpy(&event, buffer.data() + at, sizeof event);
        const char* const name = buffer.data() + at + sizeof event;
        if ((event.mask & IN_ISDIR) == 0 && event.len > 0 && wakes(name)) ++reads;
        at += static_cast<ssize_t>(sizeof event + event.len);
      }
    }
    if (reads > 0) ++waking_passes_;
    return reads;
  }

  const Tree& tree_;
  const std::string folder_;
  const int inotify_;
  bool asleep_ = false;
  bool held_ = false;
  Nanoseconds used_at_{0};
  int wake_ups_ = 0;
  int waking_passes_ = 0;
};

}  // namespace gpumeter
