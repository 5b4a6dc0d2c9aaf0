#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace gpumeter::jobs {

/// Names of users. A name may come from a directory on the network that does not answer, so each is looked
/// up on a thread of its own; who asks waits for kPatience at the most and takes the digits where that is
/// not enough. While one lookup hangs, nobody waits for another. Any thread.
class UserNames {
 public:
  using Lookup = std::function<std::optional<std::string>(std::uint32_t uid)>;

  static constexpr auto kPatience = std::chrono::milliseconds(200);

  /// `lookup` may hang for good, and be called after this object's end.
  explicit UserNames(Lookup lookup = from_system);
  /// Leaves a lookup that hangs behind.
  ~UserNames();
  UserNames(const UserNames&) = delete;
  UserNames& operator=(const UserNames&) = delete;

  /// The name, or the uid in digits: of a user that has none, and of one not known yet.
  std::string of(std::uint32_t uid);
  /// Some lookup hangs in the C library: the process must end by _exit().
  bool hangs() const;

  /// getpwuid_r(3).
  static std::optional<std::string> from_system(std::uint32_t uid);

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state) noexcept;

  const std::shared_ptr<State> state_;  ///< the thread's too, which may outlive this object
};

}  // namespace gpumeter::jobs
