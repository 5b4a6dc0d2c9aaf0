#pragma once

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace gpumeter {

struct HttpLimits {
  std::size_t of_one_worker = 160;           ///< connections served by one thread of a listener
  std::size_t of_one_peer = 32;              ///< connections of one remote address, summed over all threads
  Nanoseconds request{10'000'000'000};       ///< from the connection to the end of its first request
  Nanoseconds next_request{30'000'000'000};  ///< from an answer to the end of the next request
  Nanoseconds answer{60'000'000'000};        ///< from a request to the last byte of its answer
};

/// Key of a remote peer: an IPv4 address, or the first 64 bits of an IPv6 address, which one subscriber
/// usually has. Empty for peers on this machine, because all of them have the same address.
std::string remote_peer(const sockaddr* address);

/// The address of the daemon's own probe, which no client can have: the kernel gives every accepted
/// connection a family.
inline constexpr sockaddr kProbeAddress{.sa_family = AF_UNSPEC, .sa_data = {}};

class HttpConnections;

/// One connection. Its worker's thread reports the requests on it. Bytes that complete no request do not
/// count as activity.
class HttpConnection {
 public:
  /// A request is complete; its answer starts.
  void asked() noexcept;
  /// The answer was sent, or sending it failed.
  void answered() noexcept;
  /// Keeps the object alive until the connection is closed.
  void hold(std::shared_ptr<const void> generation) noexcept { held_ = std::move(generation); }
  /// The library does not look at the connection until `request` is released; asked() follows then.
  void paused(void* request) noexcept {
    paused_ = request;
    is_answered_ = false;
  }

 private:
  friend class HttpConnections;
  HttpConnection(const HttpConnections& book, int descriptor, std::string peer);
  void waits(Nanoseconds now, Nanoseconds at_most) noexcept;

  const HttpConnections& book_;
  const int descriptor_;
  const std::string peer_;
  const std::thread::id worker_ = std::this_thread::get_id();
  std::shared_ptr<const void> held_;
  std::atomic<std::int64_t> active_at_;  ///< time of the accept, the last complete request, or the end of its
                                         ///< answer
  std::atomic<std::int64_t> deadline_;
  std::atomic<bool> is_answered_{false};  ///< an answer is under way
  std::atomic<bool> is_served_{false};    ///< an answer was sent, and no request has come since
  std::atomic<void*> paused_{nullptr};
  bool half_closed_ = false;  ///< as found by the last look; the book's mutex guards half_closed_ and ended_
  bool ended_ = false;
};

/// The book of a server's connections. It ends connections past their deadline, and the oldest one if a new
/// one exceeds a limit. It ends a connection by shutdown() of its socket; the library then closes it. Any
/// thread.
class HttpConnections {
 public:
  /// Called with a paused request whose connection ends. The book's mutex is held, and the request exists.
  using Release = std::function<void(void* request)>;

  explicit HttpConnections(const Clock& clock, HttpLimits limits = {}, Release release = {})
      : clock_(clock), limits_(limits), release_(std::move(release)) {}

  /// Called on the thread that will serve the connection. The descriptor stays open until closed() returns.
  HttpConnection* opened(int descriptor, std::string peer) GPUMETER_EXCLUDES(mutex_);
  void closed(HttpConnection* connection) noexcept GPUMETER_EXCLUDES(mutex_);

  /// Number of answers under way. If it exceeds `limit`, the oldest is ended, so that slow clients cannot
  /// block others.
  std::size_t answers(std::size_t limit) GPUMETER_EXCLUDES(mutex_);

  /// Ends connections past their deadline. Also ends idle ones whose client's FIN was seen in two looks in a
  /// row.
  void look() GPUMETER_EXCLUDES(mutex_);

 private:
  friend class HttpConnection;
  using Connections = std::vector<std::unique_ptr<HttpConnection>>;

  template <class Belongs>
  void make_room(std::size_t limit, Belongs belongs) GPUMETER_REQUIRES(mutex_);
  template <class Belongs>
  bool end_departed(Belongs belongs) GPUMETER_REQUIRES(mutex_);
  void end_half_closed() GPUMETER_REQUIRES(mutex_);
  void end(HttpConnection& connection) noexcept GPUMETER_REQUIRES(mutex_);

  const Clock& clock_;
  const HttpLimits limits_;
  const Release release_;
  Mutex mutex_;
  Connections connections_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
