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

/// Looks up users and their uids for `jobs.users`. The name service may hang, so a separate thread calls it,
/// and the caller waits for kPatience at most. While one lookup hangs, no other is started. One thread.
class KnownUsers {
 public:
  enum class Status : std::uint8_t { known, unknown, no_answer };
  struct Entry {
    Status status = Status::no_answer;
    std::uint32_t uid = 0;  ///< valid if the user is known
  };
  using Lookup = std::function<Entry(const std::string& name)>;

  static constexpr auto kPatience = std::chrono::seconds(2);

  /// `lookup` may hang for ever and may be called after this object's destruction.
  explicit KnownUsers(const Clock& clock, Lookup lookup = from_system);

  /// Returns an entry for every name. `no_answer`: the name service failed or did not answer in time.
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
