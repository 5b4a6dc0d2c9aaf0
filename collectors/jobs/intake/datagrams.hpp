#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "base/clock.hpp"
#include "collectors/jobs/intake/gate.hpp"

namespace gpumeter::jobs {

/// One message from the queue, with the sender and time that the kernel attached.
struct Datagram {
  std::string_view payload;
  Credentials from;
  Nanoseconds sent{};  ///< CLOCK_REALTIME
  bool cut = false;    ///< longer than the buffer: `payload` is incomplete
};

/// Reads a datagram socket with SO_PASSCRED and SO_TIMESTAMPNS in batches. Reserves 4 MiB of address space,
/// but uses memory only as far as messages fill it. One thread.
class Datagrams {
 public:
  /// A larger batch is not cheaper per message (measured; reference: recvmmsg(64) keeps up with 800k/s).
  static constexpr std::size_t kBatch = 64;

  Datagrams();
  ~Datagrams();
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;

  /// Reads at most one batch without waiting, and returns its size. A datagram is valid during its `take`.
  std::size_t read(int descriptor, const std::function<void(const Datagram&)>& take);

 private:
  struct Batch;
  const std::unique_ptr<Batch> batch_;
};

}  // namespace gpumeter::jobs
