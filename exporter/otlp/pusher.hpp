#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"

/// Sends messages to a receiver by HTTP, whatever their format.
namespace gpumeter::push {

/// Where and how.
struct Target {
  std::string url;
  std::map<std::string, std::string> headers;
  bool is_compressed = true;  ///< gzip
  Duration timeout = std::chrono::seconds(10);
  std::string ca_file = {}, cert_file = {}, key_file = {};  ///< PEM; empty: the system's, none, none
};

struct Message {
  std::string body;
  std::size_t points;
};

/// The receiver's word on a message.
struct Verdict {
  std::size_t rejected = 0;  ///< points, of a message that it took
  std::string text = {};
};
/// Reads the body of an answer. `is_taken`: its status is 2xx.
using Judge = std::function<Verdict(std::string_view body, bool is_taken)>;

/// Points since the start, and the state now.
struct Figures {
  std::uint64_t sent = 0;
  std::uint64_t rejected = 0;  ///< by the receiver
  std::uint64_t dropped = 0;   ///< from the full queue
  std::size_t queued_bytes = 0;
  std::string problem = {};  ///< of the last attempt; empty: the receiver took all of it
};

/// A queue and the connection that empties it. One thread.
class Pusher {
 public:
  /// Bytes of the queue; a full one loses its oldest messages. An export of 8 GPUs has 17 kB.
  static constexpr std::size_t kMostQueued = std::size_t{16} << 20U;

  /// Loads libcurl: a daemon that sends nothing does without it and the libraries that it needs. The Error
  /// says that it is missing. The clock must outlive the pusher.
  static Result<std::shared_ptr<Pusher>> open(Target target, Judge judge, const Clock& clock);

  void add(Message message);
  /// Sends until the queue is empty, an attempt fails, or `until` (CLOCK_MONOTONIC) has passed. The last
  /// attempt may last for the timeout beyond.
  void send(Nanoseconds until);
  /// When send() has something to do; Nanoseconds::max(): after the next add().
  Nanoseconds due() const noexcept { return queue_.empty() ? Nanoseconds::max() : not_before_; }
  const Figures& figures() const noexcept { return figures_; }

 private:
  class Connection;
  struct Answer;

  Pusher(std::shared_ptr<Connection> connection, Target target, Judge judge, const Clock& clock);
  bool attempt();
  void retry(Nanoseconds demanded);
  void pop();

  const std::shared_ptr<Connection> connection_;
  const Target target_;
  const Judge judge_;
  const Clock& clock_;
  std::deque<Message> queue_;
  Nanoseconds not_before_{};
  Nanoseconds pause_{};  ///< before the last retry; 0: the last attempt did not ask for one
  Figures figures_;
};

}  // namespace gpumeter::push
