#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/worker.hpp"

namespace gpumeter::jobs {

/// Names of users. A directory on the network may supply them and may not answer, so a thread of its own
/// looks each name up. A caller waits for kPatience at most and gets the digits if that is not enough. While
/// one lookup hangs, nobody waits for another. Any thread.
class UserNames {
 public:
  using Lookup = std::function<std::optional<std::string>(std::uint32_t uid)>;

  static constexpr auto kPatience = std::chrono::milliseconds(200);

  /// `lookup` may hang for good, and may be called after this object's end.
  explicit UserNames(Lookup lookup = from_system);
  ~UserNames();
  UserNames(const UserNames&) = delete;
  UserNames& operator=(const UserNames&) = delete;

  /// The name, or the uid in digits if the user has no name or none is known yet.
  std::string of(std::uint32_t uid);
  /// True while a lookup hangs in the C library: the process must then end by _exit().
  bool hangs() const;

  /// getpwuid_r(3).
  static std::optional<std::string> from_system(std::uint32_t uid);

 private:
  struct State;

  const std::shared_ptr<State> state_;  ///< the thread's too, which may outlive this object
  Worker worker_;
};

}  // namespace gpumeter::jobs
