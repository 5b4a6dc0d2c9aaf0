#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gpumeter {

/// Threads that hung in a driver when they should have ended. Each thread owns its data and frees it at its
/// end. Until then no second thread is started for the same purpose. A device or a collector therefore holds
/// one hung thread at most. That limit holds however often a collector is removed and added, or a device
/// forgotten and found. One thread at a time.
class LeftBehind {
 public:
  /// `purpose`: a device's uuid, or one of the constants below. `owner`: the data that the thread owns; held
  /// weakly.
  void add(const std::string& collector, const std::string& purpose, std::weak_ptr<const void> owner) {
    entries_.push_back({collector, purpose, std::move(owner)});
  }
  void add(const LeftBehind& others) {
    entries_.insert(entries_.end(), others.entries_.begin(), others.entries_.end());
  }
  static constexpr const char* kDiscovery = "discovery";
  static constexpr const char* kEvents = "events";

  /// True while such a thread hangs.
  bool has(const std::string& collector, const std::string& purpose) const;
  bool has_any() const;

  /// Drops the threads that have ended and returns their collectors.
  std::vector<std::string> take_ended();

 private:
  struct Entry {
    std::string collector;
    std::string purpose;
    std::weak_ptr<const void> owner;
  };
  std::vector<Entry> entries_;
};

}  // namespace gpumeter
