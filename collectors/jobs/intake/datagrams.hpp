#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "base/clock.hpp"
#include "collectors/jobs/intake/process_identities.hpp"

namespace gpumeter::jobs {

/// One message off the queue, as the kernel signed it.
struct Datagram {
  std::string_view payload;
  Credentials from;
  Nanoseconds sent{};  ///< CLOCK_REALTIME
  bool cut = false;    ///< longer than the buffer: what was read of it is not all
};

/// Reads a datagram socket with SO_PASSCRED and SO_TIMESTAMPNS by the batch. Holds 4 MiB of address space, of
/// which those pages are used that a message was long enough for. One thread.
class Datagrams {
 public:
  Datagrams();
  ~Datagrams();
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;

  /// Takes at most one batch without waiting; how many came. `take` sees each, valid until it returns.
  std::size_t read(int descriptor, const std::function<void(const Datagram&)>& take);

 private:
  struct Batch;
  const std::unique_ptr<Batch> batch_;
};

}  // namespace gpumeter::jobs
