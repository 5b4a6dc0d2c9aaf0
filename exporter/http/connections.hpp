#pragma once

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace gpumeter {

struct HttpLimits {
  std::size_t of_one_worker = 112;           ///< connections that one thread of a listener serves
  std::size_t of_one_peer = 32;              ///< connections of one remote address, all threads together
  Nanoseconds request{10'000'000'000};       ///< from the connection to the end of its first request
  Nanoseconds next_request{30'000'000'000};  ///< from an answer to the end of the next request
  Nanoseconds answer{60'000'000'000};        ///< from a request to the last byte of its answer
};

/// Who counts as one remote peer: an IPv4 address or the first 64 bits of an IPv6 address, which is what one
/// subscriber has. Empty for peers on this machine, which all have the same address.
std::string remote_peer(const sockaddr* address);

class HttpConnections;

/// One connection. Its worker's thread reports the requests on it; bytes that complete no request do not
/// count as activity.
class HttpConnection {
 public:
  /// A request is complete and is being answered.
  void asked() noexcept;
  /// The answer was sent, or could not be.
  void answered() noexcept;

 private:
  friend class HttpConnections;
  HttpConnection(const HttpConnections& book, int descriptor, std::string peer);
  void waits(Nanoseconds now, Nanoseconds at_most) noexcept;

  const HttpConnections& book_;
  const int descriptor_;
  const std::string peer_;
  const std::thread::id worker_ = std::this_thread::get_id();
  std::atomic<std::int64_t> active_at_;  ///< accepted, the last complete request, or the end of its answer
  std::atomic<std::int64_t> deadline_;
  std::atomic<bool> is_answered_{false};  ///< an answer is under way
  bool half_closed_ = false;  ///< as the last look found it; the book's mutex guards this and the next
  bool ended_ = false;
};

/// The book of a server's connections: ends those past their deadline, and the oldest one when a new one
/// exceeds a limit. A connection is ended by shutdown() of its socket, upon which the library closes it.
/// Any thread.
class HttpConnections {
 public:
  explicit HttpConnections(const Clock& clock, HttpLimits limits = {}) : clock_(clock), limits_(limits) {}

  /// On the thread that will serve the connection. The descriptor stays open until closed() has returned.
  HttpConnection* opened(int descriptor, std::string peer) GPUMETER_EXCLUDES(mutex_);
  void closed(HttpConnection* connection) noexcept GPUMETER_EXCLUDES(mutex_);

  /// How many answers are under way. Above `limit` the oldest is ended, so that clients that take theirs
  /// slowly keep nobody from one.
  std::size_t answers(std::size_t limit) GPUMETER_EXCLUDES(mutex_);

  /// Ends connections past their deadline, and idle ones whose client has sent its FIN by two looks in a row.
  void look() GPUMETER_EXCLUDES(mutex_);

 private:
  friend class HttpConnection;
  using Connections = std::vector<std::unique_ptr<HttpConnection>>;

  template <class Belongs>
  void make_room(std::size_t limit, Belongs belongs) GPUMETER_REQUIRES(mutex_);
  void end_half_closed() GPUMETER_REQUIRES(mutex_);
  static void end(HttpConnection& connection) noexcept;

  const Clock& clock_;
  const HttpLimits limits_;
  Mutex mutex_;
  Connections connections_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
