#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "daemon/profiles/trace_file.hpp"

namespace gpumeter {

/// The traces that the daemon writes itself: those that conditions take from PyTorch's debug server, which
/// returns the trace and has no client that would write it. Each has a thread ("trace-fetch"), because the
/// process and the folder may both be slow. One thread.
class Fetches {
 public:
  /// A trace of a few seconds of a large model has hundreds of MB. The job chooses its size.
  static constexpr std::uint64_t kMostBytes = 512ULL << 20;
  /// Of all traces in the folder; the oldest ones make room.
  static constexpr std::uint64_t kMostInFolder = 4 * kMostBytes;

  struct Order {
    Descriptor connection;    ///< non-blocking; may be under way
    std::string socket = {};  ///< path of a Unix socket to connect to, if there is no connection
    std::string request;
    std::string path;          ///< of the file
    std::uint32_t reader = 0;  ///< uid of the job's user
    Nanoseconds patience{};    ///< the longest silence of the process
  };
  struct Ended {
    int pid = 0;
    std::string error;  ///< empty: the file is written
  };

  /// `clock` must outlive the threads.
  explicit Fetches(const Clock& clock);
  /// Ends all threads without waiting for them.
  ~Fetches();
  Fetches(const Fetches&) = delete;
  Fetches& operator=(const Fetches&) = delete;

  /// Begins with the trace of a process.
  void start(int pid, Order order);
  /// Returns those that have ended, once.
  std::vector<Ended> take_ended();
  /// Ends and forgets the fetch of a process, if there is one. An incomplete file is removed.
  void stop(int pid);

 private:
  class Call;

  const Clock& clock_;
  std::map<int, std::unique_ptr<Call>> calls_;  ///< by pid
};

}  // namespace gpumeter
