#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "collectors/api/machine.hpp"
#include "exporter/access/waiting.hpp"
#include "exporter/web/pages.hpp"

namespace gpumeter {

class HttpConnection;
struct WebGeneration;

/// The body of one answer of text/event-stream: the last events, then each new one, between them a picture of
/// all GPUs and runs each second, if pictures are asked for, and a comment when nothing has come for a while,
/// by which either side notices that the other has left. It holds one message at a time, and a picture's
/// bytes are those of all readers. A client that reads slowly gets the newest picture next, and loses those
/// between, and events that have left the ledger meanwhile; their ids tell. One that takes longer for a
/// message than an answer may take (HttpLimits::answer) is disconnected.
class EventStream {
 public:
  /// Less than proxies' usual limit of 30 s or a minute for a silent connection.
  static constexpr Nanoseconds kHeartbeat = std::chrono::seconds(15);

  /// `after`: the id of the last event that the client has. `pictures`: their source, or null: events alone.
  /// All outlive the stream, as does the ledger of `machine`.
  EventStream(const Machine& machine, const Clock& clock, std::uint64_t after, LiveAnswers* pictures)
      : machine_(machine), clock_(clock), pictures_(pictures), last_(after) {}

  /// Before the first read(): the request, and its entry in the book, which may be null.
  void attach(void* request, HttpConnection* entry, const Pausing& pausing) noexcept;

  /// On a thread of the library: copies the next bytes. Pauses the request and returns 0 if there are none;
  /// returns kEnd after end().
  static constexpr ssize_t kEnd = -1;
  ssize_t read(char* to, std::size_t most) GPUMETER_EXCLUDES(mutex_);

  /// Resumes the request if there is something to send. Must not wait for a client.
  void look() GPUMETER_EXCLUDES(mutex_);
  /// The client or the server leaves: the body ends with the next read.
  void end() GPUMETER_EXCLUDES(mutex_);
  bool is_of(const void* request) const noexcept { return request_ == request; }

 private:
  /// The next message; null: there is nothing to send.
  SharedBytes next() GPUMETER_REQUIRES(mutex_);
  /// The newest picture if the client has not had it; otherwise null.
  SharedBytes new_picture() const GPUMETER_REQUIRES(mutex_);
  void resume() GPUMETER_REQUIRES(mutex_);

  const Machine& machine_;
  const Clock& clock_;
  LiveAnswers* const pictures_;
  // Constant after attach().
  void* request_ = nullptr;
  HttpConnection* entry_ = nullptr;
  Pausing pausing_{};

  Mutex mutex_;
  SharedBytes message_ GPUMETER_GUARDED_BY(mutex_);   ///< under way; null: none
  std::size_t sent_ GPUMETER_GUARDED_BY(mutex_) = 0;  ///< of message_
  SharedBytes shown_ GPUMETER_GUARDED_BY(mutex_);  ///< the last picture; held so that its address is its own
  std::uint64_t last_ GPUMETER_GUARDED_BY(mutex_);
  Nanoseconds heartbeat_at_ GPUMETER_GUARDED_BY(mutex_){};
  bool is_paused_ GPUMETER_GUARDED_BY(mutex_) = false;
  bool is_over_ GPUMETER_GUARDED_BY(mutex_) = false;
};

/// The streams of a server. A stream is a connection that waits, never a thread. Any thread.
class EventStreams {
 public:
  /// Limits for all clients, and for one (Peer::key).
  static constexpr std::size_t kMost = 96;
  static constexpr std::size_t kMostOfPeer = 64;

  /// False: too many streams are open. `peer`: Peer::key; `access`: what admitted it, or null.
  bool add(const std::shared_ptr<EventStream>& stream, const std::string& peer,
           std::shared_ptr<const WebGeneration> access) GPUMETER_EXCLUDES(mutex_);
  /// Continues the streams that have something to send, and ends those of other users than `access` has: a
  /// client that is still one comes back. Called four times a second.
  void look(const std::shared_ptr<const WebGeneration>& access) GPUMETER_EXCLUDES(mutex_);
  /// Ends the stream of a paused request. Others: no effect.
  void release(const void* request) GPUMETER_EXCLUDES(mutex_);
  /// Ends all streams, and those that come later. The library cannot stop while one is paused.
  void close() GPUMETER_EXCLUDES(mutex_);

 private:
  struct Open {
    std::weak_ptr<EventStream> stream;  ///< the library's response owns it
    std::string peer;
    std::shared_ptr<const WebGeneration> access;
  };
  std::vector<std::shared_ptr<EventStream>> open() GPUMETER_REQUIRES(mutex_);

  Mutex mutex_;
  std::vector<Open> open_ GPUMETER_GUARDED_BY(mutex_);
  bool is_closed_ GPUMETER_GUARDED_BY(mutex_) = false;
};

}  // namespace gpumeter
