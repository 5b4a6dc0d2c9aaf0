#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "collectors/attribution/grpc/stream.hpp"

namespace gpumeter::grpc {

/// A call to a server on a connection of its own, to a Unix socket unless stated otherwise. The only call
/// that may block is wait(), and it has a deadline. One thread.
class Call {
 public:
  /// Connects and sends the request. `clock` must be the system's and outlive this object. A missing socket
  /// is an outcome, which wait() reports.
  Call(const std::string& socket, Request request, const Clock& clock);

  /// Sends the request on a stream socket that does not block, such as one of TCP. Its connect() may be under
  /// way.
  Call(Descriptor socket, Request request, const Clock& clock);

  enum class Event : std::uint8_t {
    message,   ///< take_message() has one
    end,       ///< outcome() holds the reason
    deadline,  ///< nothing happened in time; the call goes on
    woken,     ///< the descriptor `waker` became readable; the call goes on
  };
  /// Waits for the next event until `deadline` (CLOCK_MONOTONIC). `waker`: an eventfd, or -1.
  Event wait(Nanoseconds deadline, int waker = -1);

  /// Removes and returns the message that wait() announced.
  std::string take_message();

  const Outcome& outcome() const noexcept { return stream_.outcome(); }
  /// True if the socket does not exist.
  bool is_absent() const noexcept { return is_absent_; }

 private:
  void connect_to(const std::string& path);
  void fail(int error);
  void flush();
  void receive();

  const Clock& clock_;
  Stream stream_;
  Descriptor socket_;
  bool is_absent_ = false;
  std::string unsent_;
  std::optional<std::string> message_;
};

/// The answer to a call that has one message.
struct Answer {
  Outcome outcome;
  std::string message = {};
  bool is_absent = false;  ///< the socket does not exist
};

/// Makes a call and waits for its answer until `deadline` or until `waker` is readable, which is a timeout
/// too.
Answer ask(const std::string& socket, Request request, const Clock& clock, Nanoseconds deadline,
           int waker = -1);
Answer ask(Descriptor socket, Request request, const Clock& clock, Nanoseconds deadline, int waker = -1);

}  // namespace gpumeter::grpc
