#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "exporter/listen/socket.hpp"

namespace gpumeter {

struct HttpLimits {
  /// Connections served by one thread of a listener. Above it, connections without a request end once they
  /// have waited for `patience`.
  std::size_t of_one_worker = 160;
  std::size_t most_of_one_worker = 208;  ///< above it, any connection may end at once
  std::size_t of_one_peer = 32;          ///< connections of one remote peer, summed over all threads
  /// File descriptors that connections leave to the rest of the daemon: so many, or a quarter of
  /// RLIMIT_NOFILE if that is less. The daemon's own parts open a few dozen.
  std::size_t free_descriptors = 64;
  /// Bytes of different bodies under way, or two bodies if they are larger. Each page that a slow client
  /// still reads stays in memory.
  std::size_t bytes = std::size_t{32} << 20U;
  Nanoseconds request{10'000'000'000};       ///< from the connection to the end of its first request
  Nanoseconds next_request{30'000'000'000};  ///< from an answer to the end of the next request
  Nanoseconds answer{60'000'000'000};        ///< from a request to the last byte of its answer
  /// How long a new connection may take to send its request while other clients need its place. A scraper
  /// needs less than a millisecond, unless it is off its processor meanwhile.
  Nanoseconds patience{250'000'000};
  /// How long sending an answer may take while other clients need its place. 17 MB take 40 ms on loopback.
  Nanoseconds long_answer{100'000'000};
};

class HttpConnections;

/// One connection. Its worker's thread reports the requests on it. Bytes that complete no request do not
/// count as activity.
class HttpConnection {
 public:
  const Peer& peer() const noexcept { return group_->first; }
  /// It came on a private listener. Set before its first request, on its worker's thread.
  bool is_private() const noexcept { return is_private_; }
  void set_private() noexcept { is_private_ = true; }
  /// A request is complete; its answer starts.
  void asked() noexcept;
  /// The answer is ready. Connections with the same `body` share its bytes. The client gives up `timeout`
  /// after its request.
  void sends(const void* body, std::size_t bytes, Nanoseconds timeout) noexcept;
  /// The answer has no end; its next message is sent, as in sends(), within the time that an answer has.
  /// `waiting`: null, or, if there is no message, the request, which is paused as in paused(), for any time.
  void streams(void* waiting, const void* message, std::size_t bytes) noexcept;
  /// The answer was sent, or sending it failed.
  void answered() noexcept;
  /// Keeps the object alive until the connection is closed.
  void hold(std::shared_ptr<const void> generation) noexcept { held_ = std::move(generation); }
  /// The library does not look at the connection until `request` is released; asked() follows then.
  void paused(void* request) noexcept;

 private:
  friend class HttpConnections;
  /// The connections of one peer.
  struct Group {
    std::size_t entries = 0;              ///< guarded by the book's mutex, as `open`
    std::size_t open = 0;                 ///< entries that were not ended
    std::atomic<std::size_t> answers{0};  ///< under way
  };
  /// In the order in which they give way. `silent`: no request yet; `served`: an answer was sent, and no
  /// request has come since; `paused`: its password is being checked, or a stream has nothing to send;
  /// `streaming`: a stream's message is being sent; `asked`: its answer is being made.
  enum class Phase : std::uint8_t { silent, served, paused, streaming, asked, sending };

  HttpConnection(HttpConnections& book, int descriptor) : book_(book), descriptor_(descriptor) {}
  void waits(Nanoseconds now, Nanoseconds at_most) noexcept;
  bool is_answered() const noexcept { return phase_ >= Phase::asked; }

  HttpConnections& book_;
  const int descriptor_;
  const std::thread::id worker_ = std::this_thread::get_id();
  bool is_private_ = false;
  std::shared_ptr<const void> held_;
  std::atomic<std::int64_t> active_at_{0};  ///< time of the accept, the last complete request, the start of
                                            ///< its answer's sending, or the end of it
  std::atomic<std::int64_t> deadline_{0};
  std::atomic<Phase> phase_{Phase::silent};
  std::atomic<const void*> body_{nullptr};
  std::atomic<std::size_t> bytes_{0};
  std::atomic<void*> paused_{nullptr};
  std::map<Peer, Group>::iterator group_;  ///< set once, by opened()
  bool half_closed_ = false;  ///< as found by the last look; the book's mutex guards half_closed_ and ended_
  bool ended_ = false;
};

/// The book of a server's connections. It ends connections past their deadline, and others if a new one
/// exceeds a limit: first those whose client has left, then those of the peer with the most connections, of
/// these the ones that never sent a request before others, and the oldest first. It ends a connection by
/// shutdown() of its socket; the library then closes it. Any thread.
class HttpConnections {
 public:
  /// Called with a paused request whose connection ends. The book's mutex is held, and the request exists.
  using Release = std::function<void(void* request)>;

  explicit HttpConnections(const Clock& clock, HttpLimits limits = {}, Release release = {})
      : clock_(clock), limits_(limits), release_(std::move(release)) {}

  /// Called on the thread that will serve the connection. The descriptor stays open until closed() returns.
  HttpConnection* opened(int descriptor, Peer peer) GPUMETER_EXCLUDES(mutex_);
  void closed(HttpConnection* connection) noexcept GPUMETER_EXCLUDES(mutex_);

  /// False if the answers under way certainly hold no more bytes than allowed. Takes no lock.
  bool may_hold_too_much() const noexcept { return bytes_ > limits_.bytes; }
  /// Ends answers whose sending takes longer than `long_answer`, while more than `most` are under way or
  /// while they hold too many bytes: those of the peer with the most answers first, and the oldest first.
  /// Streams hold bytes, but are no answers under way, because they have no end.
  /// Returns how many are under way then: more than `most` if a limit is still exceeded. For `asker`, which
  /// may be null, answers of a peer that has more than twice as many under way end at once.
  std::size_t make_room_for_answers(std::size_t most, const HttpConnection* asker = nullptr)
      GPUMETER_EXCLUDES(mutex_);

  /// The library could not accept a connection on the calling thread for lack of a descriptor or of memory.
  /// Ends an idle connection for it, now or at one of the next looks, or gives up the spare descriptor. Waits
  /// for 50 ms if the thread has no connections, because the library would try again at once.
  void accept_failed() noexcept GPUMETER_EXCLUDES(mutex_);
  /// Connections had to end within the last minute because the process had too few descriptors.
  bool lacks_descriptors() const noexcept { return clock_.monotonic().count() < lacks_until_; }

  /// Ends connections past their deadline. Also ends idle ones whose client's FIN was seen in two looks in a
  /// row.
  void look() GPUMETER_EXCLUDES(mutex_);

 private:
  friend class HttpConnection;
  using Phase = HttpConnection::Phase;
  using Connections = std::vector<std::unique_ptr<HttpConnection>>;

  void make_room_on_worker_of(const HttpConnection& opened) GPUMETER_REQUIRES(mutex_);
  void make_room_at_peer_of(const HttpConnection& opened) GPUMETER_REQUIRES(mutex_);
  void make_room_of_descriptors(const HttpConnection& opened) GPUMETER_REQUIRES(mutex_);
  bool make_room_for_starved() GPUMETER_REQUIRES(mutex_);
  template <class Belongs>
  bool end_idle_for_descriptor(Belongs belongs) GPUMETER_REQUIRES(mutex_);
  int closing() const GPUMETER_REQUIRES(mutex_);  ///< connections that were ended and are not closed yet
  template <class Belongs>
  std::size_t count(Belongs belongs) const GPUMETER_REQUIRES(mutex_);
  /// The one that gives way first among those up to `phase` that have been so since `since`; null if none.
  template <class Belongs>
  HttpConnection* first(Belongs belongs, Phase phase, Nanoseconds since) GPUMETER_REQUIRES(mutex_);
  template <class Belongs>
  bool end_departed(Belongs belongs) GPUMETER_REQUIRES(mutex_);
  bool holds_too_much() const GPUMETER_REQUIRES(mutex_);
  HttpConnection* longest_answer(const HttpConnection* asker, bool or_stream) GPUMETER_REQUIRES(mutex_);
  void end_half_closed() GPUMETER_REQUIRES(mutex_);
  void end(HttpConnection& connection) noexcept GPUMETER_REQUIRES(mutex_);

  const Clock& clock_;
  const HttpLimits limits_;
  const Release release_;
  std::atomic<std::size_t> bytes_{0};  ///< of all answers under way; a shared body counts for each
  std::atomic<std::int64_t> lacks_until_{0};
  Mutex mutex_;
  Descriptor spare_ GPUMETER_GUARDED_BY(mutex_);  ///< for a connection when no descriptor is left
  bool is_starved_ GPUMETER_GUARDED_BY(mutex_) =
      false;  ///< an accept() failed, and no connection ended for it
  Connections connections_ GPUMETER_GUARDED_BY(mutex_);
  std::map<Peer, HttpConnection::Group> groups_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
