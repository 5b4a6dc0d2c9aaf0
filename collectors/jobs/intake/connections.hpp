#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <variant>

#include "base/descriptor.hpp"
#include "collectors/jobs/intake/gate.hpp"
#include "collectors/jobs/wire/payload.hpp"

namespace gpumeter::jobs {

/// Connections of jobs to the stream socket, each of the process that connected (SO_PEERCRED). One thread.
class Connections {
 public:
  /// Each holds 64 KiB, and a descriptor.
  static constexpr std::size_t kMost = 256;
  static constexpr std::size_t kMostOfUser = 64;
  /// python3-statsd raises in the job when its connection is closed, and a job may be silent for as long as
  /// an epoch takes: only who holds one and says nothing for hours is taken for dead.
  static constexpr Nanoseconds kIdle = std::chrono::hours(6);

  using Take = std::function<void(const Sender&, std::string_view payload)>;

  explicit Connections(Gate& gate) : gate_(gate) {}

  /// Takes over a connection; its number, or why it was closed at once.
  std::variant<int, Refusal> add(Descriptor connection, Nanoseconds now);
  /// Reads what fits into one buffer. Closes where it has ended or cannot be followed; the number of lines
  /// and frames that were too long.
  std::uint64_t read(int number, Nanoseconds now, const Take& take);
  /// Closes those that are idle. Once a second or so.
  void tick(Nanoseconds now);
  std::size_t size() const noexcept { return open_.size(); }

 private:
  struct Connection {
    Descriptor descriptor;
    Guest guest;
    StreamSplitter splitter;
    Nanoseconds heard;
  };

  Gate& gate_;
  std::map<int, Connection> open_;
};

}  // namespace gpumeter::jobs
