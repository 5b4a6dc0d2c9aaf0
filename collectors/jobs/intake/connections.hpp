#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <variant>

#include "base/descriptor.hpp"
#include "base/shares.hpp"
#include "collectors/jobs/intake/gate.hpp"
#include "collectors/jobs/wire/payload.hpp"

namespace gpumeter::jobs {

/// Connections to the stream socket. Each belongs to the process that connected (SO_PEERCRED). One thread.
///
/// If all places are taken, a new connection takes the place of another: of the user with the most
/// connections, the one that is silent the longest. It does so if its own user has at least two fewer, or
/// none. So a few users cannot keep the others out.
class Connections {
 public:
  /// Each connection holds 64 KiB and a descriptor.
  static constexpr std::size_t kMost = 256;
  static constexpr std::size_t kMostOfUser = 64;
  /// When its connection is closed, python3-statsd raises an exception in the job. A job may be silent for a
  /// whole epoch, so only connections that are silent for hours are closed, or that hold the place of another
  /// user's.
  static constexpr Nanoseconds kIdle = std::chrono::hours(6);

  using Take = std::function<void(const Sender&, std::string_view payload)>;

  explicit Connections(Gate& gate) : gate_(gate) {}

  /// Returns the number of the connection, or the reason for which it was closed at once.
  std::variant<int, Refusal> add(Descriptor connection, Nanoseconds now);
  /// Reads one buffer, and closes a connection that has ended or is broken. Returns the number of lines and
  /// frames that were too long.
  std::uint64_t read(int number, Nanoseconds now, const Take& take);
  /// Returns how many connections had to give way to others since the last call.
  std::uint64_t take_displaced() noexcept { return std::exchange(displaced_, 0); }
  /// From now on clients cannot send; what they have sent can still be read.
  void refuse_senders() const;
  /// Closes idle connections. Call about once a second.
  void tick(Nanoseconds now);
  std::size_t size() const noexcept { return open_.size(); }

 private:
  struct Connection {
    Descriptor descriptor;
    Guest guest;
    StreamSplitter splitter;
    Nanoseconds heard;
  };

  static std::uint32_t payer(const Guest& guest) noexcept { return payer_of(guest.id.uid, guest.owner); }
  bool make_room(std::uint32_t paying);
  void erase(std::map<int, Connection>::iterator at);

  Gate& gate_;
  std::map<int, Connection> open_;
  Shares<std::uint32_t> shares_;  ///< of open_
  std::uint64_t displaced_ = 0;
};

}  // namespace gpumeter::jobs
