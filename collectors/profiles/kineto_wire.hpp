#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "collectors/profiles/door.hpp"

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
