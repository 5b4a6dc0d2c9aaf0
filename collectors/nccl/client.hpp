#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace gpumeter::nccl {

/// Limits of one query.
struct QueryLimits {
  Nanoseconds patience = std::chrono::seconds(15);  ///< NCCL's own limits are 5 s a leg and 10 s in all
  std::size_t most_bytes = 0;
};

/// A connection to RAS on a loopback address: the text protocol of NCCL's documentation ("RAS", RAS Queries).
/// Every call has the deadline of the object. One thread.
class RasClient {
 public:
  /// `clock` must be the system's and outlive this object. `waker`: an eventfd that ends the query, or -1.
  RasClient(const Clock& clock, QueryLimits limits, int waker = -1)
      : clock_(clock), limits_(limits), waker_(waker), deadline_(clock.monotonic() + limits.patience) {}

  /// Connects, asks for JSON and for the status of the job, and returns the whole document. The server closes
  /// the connection after it. A server before 2.28.7 has text only, which is an Error.
  Result<std::string> status(int family, std::uint16_t port);

 private:
  Result<Done> connect(int family, std::uint16_t port);
  Result<Done> wait(short events);
  Result<Done> send(std::string_view text);
  Result<Done> read_line(std::string& line);
  /// Returns the number of bytes; 0: the server closed the connection.
  Result<std::size_t> receive();

  const Clock& clock_;
  const QueryLimits limits_;
  const int waker_;
  const Nanoseconds deadline_;
  Descriptor socket_;
  std::string received_;
};

}  // namespace gpumeter::nccl
