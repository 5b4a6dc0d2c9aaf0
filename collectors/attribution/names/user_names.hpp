#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/worker.hpp"

namespace gpumeter::jobs {

/// Names of users. A network directory may supply them and may not answer, so a separate thread looks up each
/// name. A caller waits for kPatience at most and then gets the digits. While one lookup hangs, no caller
/// waits for another. The thread looks up those first that are asked for most often, and a name that is known
/// is kept: a process that takes another uid for each question delays nobody's name for long. Any thread.
class UserNames {
 public:
  using Lookup = std::function<std::optional<std::string>(std::uint32_t uid)>;

  static constexpr auto kPatience = std::chrono::milliseconds(200);

  /// `lookup` may hang for ever and may be called after this object's destruction.
  explicit UserNames(Lookup lookup = from_system);
  ~UserNames();
  UserNames(const UserNames&) = delete;
  UserNames& operator=(const UserNames&) = delete;

  /// Returns the name, or the uid in digits if the user has no name or it is not known yet.
  std::string of(std::uint32_t uid);
  /// The same, for threads that others wait for, such as the one that receives the messages of all jobs: all
  /// calls together wait for kPatience, and for a fiftieth of the time that passes. A slow directory
  /// otherwise makes such a thread as slow as itself.
  std::string soon(std::uint32_t uid);
  /// True while a lookup hangs in the C library: the process must then end by _exit().
  bool hangs() const;

  /// getpwuid_r(3).
  static std::optional<std::string> from_system(std::uint32_t uid);

 private:
  struct State;

  std::string of(std::uint32_t uid, Nanoseconds patience);

  const std::shared_ptr<State> state_;  ///< shared with the thread, which may outlive this object
  Worker worker_;
};

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
