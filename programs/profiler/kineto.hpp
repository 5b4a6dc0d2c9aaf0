#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/users.hpp"
#include "collectors/jobs/intake/sockets.hpp"
#include "programs/profiler/desk.hpp"

/// The datagrams by which PyTorch's profiler library, Kineto, asks a local daemon for orders. The layout is
/// that of Kineto's libkineto/src/IpcFabricConfigClient.cpp and of dynolog's
/// ipcfabric/{FabricManager,Utils}.h (Kineto 114171df). A datagram is a header of 40 bytes (u64 size of the
/// payload, char[32] type) and the payload, in the machine's byte order. Any thread.
namespace gpumeter::profiles::kineto {

inline constexpr std::size_t kHeaderBytes = 40;

/// Longer than any request: one with Kineto's 11 process numbers has 100 bytes.
inline constexpr std::size_t kMostBytes = 1024;

struct Message {
  enum class Kind : std::uint8_t {
    context,  ///< "ctxt": registers; Kineto from July 2026 on does not send it
    request   ///< "req": asks for an order, every 5 s
  };
  Kind kind = Kind::request;
  /// Of a request: the process accepts an order for a trace of activities. False while it takes one.
  bool is_free = false;
};

/// Returns nullopt unless the datagram is complete and its sizes agree. The numbers of processes in it are
/// ignored: the kernel identifies the sender.
std::optional<Message> parse(std::string_view datagram) noexcept;

/// Returns the answer to a request; empty text: no order. Kineto allocates what the header promises, so the
/// size is that of the text.
std::string answer(std::string_view text);
/// Returns the answer to a context: the number of processes that are registered.
std::string answer_context(std::int32_t registered);

/// The time from the order to the start of a trace by time. Kineto starts a trace only if its warm-up of 1 s
/// fits before the start, and looks at new orders once a second. With PROFILE_START_TIME=0 it leaves just
/// that time, and drops some orders ("insufficient time for warmup", seen with PyTorch 2.8).
inline constexpr std::chrono::seconds kStartAfter{4};

/// Returns the order as Kineto's configuration, a line for each key. `unix`: the time now (CLOCK_REALTIME).
std::string text_of(const Order& order, Nanoseconds unix);

/// The file that the process with this number, as the process itself sees it, writes for the path of an
/// order: /tmp/x.json becomes /tmp/x_123.json.
std::string file_of(const std::string& path, int inner_pid);

/// The time that a process is busy with an order at least; steps take an unknown time (0).
Nanoseconds least_time(const Extent& extent) noexcept;

/// Checks the path of an order. Kineto rejects a whole configuration with a second '=' in a line or a '#',
/// and takes no path with "..".
Result<Done> check_path(std::string_view path);

}  // namespace gpumeter::profiles::kineto

namespace gpumeter::profiles {

/// A sender as the kernel identifies it.
struct Peer {
  int pid = 0;  ///< in the program's pid namespace
  std::uint32_t uid = 0;
  std::string address;  ///< of its socket; Kineto's contains a random number, so it identifies the process
};

/// The processes that poll by Kineto's protocol, and their orders. A process is forgotten 60 s after its last
/// poll, as in dynolog. It gets its order as the answer to a poll. Later polls show when its trace begins and
/// ends: the process is not free in between. A trace of steps that is shorter than the interval of the polls,
/// 5 s by default, may never be seen and counts as done.
class KinetoDoor final : public Door {
 public:
  static constexpr Nanoseconds kForgotten = std::chrono::seconds(60);
  static constexpr std::size_t kMost = 8192;
  static constexpr std::size_t kMostOfUser = 1024;  ///< more ranks and loaders than one machine runs

  using OwnerOf = std::function<std::uint32_t(std::uint32_t uid)>;
  explicit KinetoDoor(OwnerOf owner_of = [](std::uint32_t uid) { return uid; })
      : owner_of_(std::move(owner_of)) {}

  /// Takes a message. Returns the order to send, in Kineto's words; empty: none. If a quota is full, the
  /// process stays unknown. `now`: CLOCK_MONOTONIC; `unix`: CLOCK_REALTIME.
  std::string hear(const Peer& peer, const kineto::Message& message, Nanoseconds now, Nanoseconds unix);
  /// The order that hear() returned could not be sent; the next poll gets it.
  void unsent(int pid);
  /// Forgets processes that are silent. Call about once a second.
  void tick(Nanoseconds now);
  /// The process has ended.
  void gone(int pid);
  std::size_t size() const noexcept { return known_.size(); }

  std::vector<Process> processes() const override;
  Result<Done> ask(int pid, const Order& order, Nanoseconds now) override;
  Progress progress(int pid) const override;
  void release(int pid) override;
  /// /tmp/x.json becomes /tmp/x_123.json.
  std::string file_of(const Order& order, int pid, int inner_pid) const override;
  std::string_view begins() const noexcept override { return "PyTorch asks for orders every 5 s"; }

 private:
  struct Known {
    Peer peer;
    std::uint32_t payer = 0;
    Nanoseconds heard{};
    Stage stage = Stage::none;
    std::string why;
    Order order;
    Nanoseconds taken{};
    bool was_busy = false;  ///< since it took the order
    int idle_polls = 0;     ///< since then, before it was busy
  };

  Known* known(const Peer& peer);
  bool make_room(std::uint32_t payer);
  static std::string advance(Known& known, bool is_free, Nanoseconds now, Nanoseconds unix);
  static void fail(Known& known, std::string why);
  void forget(std::map<int, Known>::iterator at, const std::string& why);

  const OwnerOf owner_of_;
  std::map<int, Known> known_;       ///< by pid
  Shares<std::uint32_t> shares_;     ///< of known_
  std::map<int, std::string> lost_;  ///< why the orders of forgotten processes failed, until release()
};

/// A socket on which Kineto's clients ask. One thread.
///
/// Kineto ends its process if a datagram comes from a socket of another form than its own, or from one
/// without a name. An answer therefore leaves by this socket, and only to an address of the same form. In a
/// folder, the file at that address must be a socket of the sender's user, so that nobody can direct his
/// answer to the process of another user.
///
/// Where the kernel sends the sender's pidfd along (SCM_PIDFD, Linux 6.5), a process that has ended when its
/// datagram is read gets no answer, because its number may be another process's. An older kernel gives the
/// number alone.
class KinetoSocket {
 public:
  /// The abstract name "dynolog". Kineto counts the NUL behind it to the name.
  static Result<KinetoSocket> open_abstract();
  /// FOLDER/dynolog, as Kineto has it with KINETO_IPC_SOCKET_DIR. Creates the folder, in which every user may
  /// create files, and nobody remove those of others.
  static Result<KinetoSocket> open_in(const std::string& folder);

  /// Returns the answer to a datagram; empty: none.
  using Answer = std::function<std::string(const Peer&, std::string_view datagram)>;
  /// An answer could not be sent.
  using Unsent = std::function<void(const Peer&)>;

  /// Reads and answers what waits, up to 64 datagrams.
  void serve(const Answer& answer, const Unsent& unsent) const;
  int number() const noexcept { return socket_.number(); }

 private:
  KinetoSocket(jobs::BoundSocket socket, std::string folder);

  bool serve_one(const Answer& answer, const Unsent& unsent) const;
  bool send_to(const Peer& peer, const std::string& bytes) const;
  bool is_ours(std::string_view address) const noexcept;

  jobs::BoundSocket socket_;
  std::string folder_;  ///< empty: abstract
  bool has_pidfds_ = false;
};

}  // namespace gpumeter::profiles
