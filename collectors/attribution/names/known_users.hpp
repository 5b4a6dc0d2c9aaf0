#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/worker.hpp"

namespace gpumeter::jobs {

/// Whether users exist, and their uids, for `jobs.users`. The name service may hang, so a thread of its own
/// asks it, and the caller waits for kPatience at most. While one lookup hangs, no other is started. One
/// thread.
class KnownUsers {
 public:
  enum class Status : std::uint8_t { known, unknown, no_answer };
  struct Entry {
    Status status = Status::no_answer;
    std::uint32_t uid = 0;  ///< of a known user
  };
  using Lookup = std::function<Entry(const std::string& name)>;

  static constexpr auto kPatience = std::chrono::seconds(2);

  /// `lookup` may hang for good, and may be called after this object's end.
  explicit KnownUsers(const Clock& clock, Lookup lookup = from_system);

  /// An entry for every name. `no_answer`: the name service failed or did not answer in time.
  std::map<std::string, Entry> of(const std::vector<std::string>& names);
  /// True while a lookup hangs in the C library: the process must then end by _exit().
  bool hangs() const { return worker_ && worker_->busy_since(); }

  /// getpwnam_r(3).
  static Entry from_system(const std::string& name);

 private:
  const Clock& clock_;
  const Lookup lookup_;
  std::unique_ptr<Worker> worker_;  ///< of the last lookup
};

}  // namespace gpumeter::jobs
