#include "programs/profiler/traces.hpp"

#include <endian.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "programs/profiler/asking.hpp"

namespace gpumeter::profiles {
namespace {

Error system_error(const std::string& what) {
  return Error(what + ": " + std::generic_category().message(errno));
}

struct AccessList {  // the value of system.posix_acl_access, little-endian
  posix_acl_xattr_header header;
  posix_acl_xattr_entry entries[5];
};
static_assert(sizeof(AccessList) == 4 + 5 * 8);

posix_acl_xattr_entry entry(int tag, int rights, std::uint32_t id = static_cast<std::uint32_t>(-1)) {
  return {htole16(static_cast<std::uint16_t>(tag)), htole16(static_cast<std::uint16_t>(rights)), htole32(id)};
}

/// The owner writes and reads, the user reads, nobody else does anything.
AccessList readable_by(std::uint32_t uid) {
  return {{htole32(POSIX_ACL_XATTR_VERSION)},
          {entry(ACL_USER_OBJ, ACL_READ | ACL_WRITE), entry(ACL_USER, ACL_READ, uid), entry(ACL_GROUP_OBJ, 0),
           entry(ACL_MASK, ACL_READ), entry(ACL_OTHER, 0)}};
}

struct Trace {
  std::string name;
  timespec written{};
  std::uint64_t size = 0;
};

/// The newest first.
std::vector<Trace> traces_in(const Folder& folder) {
  constexpr std::size_t kMostFiles = 65536;
  std::vector<Trace> traces;
  for (const std::string& name : folder.names(kMostFiles)) {
    const auto facts = is_trace_name(name) ? folder.facts(name) : std::nullopt;
    if (facts && S_ISREG(facts->st_mode)) {
      traces.push_back({name, facts->st_mtim, static_cast<std::uint64_t>(facts->st_size)});
    }
  }
  std::ranges::sort(traces, std::greater<>(),
                    [](const Trace& each) { return std::pair(each.written.tv_sec, each.written.tv_nsec); });
  return traces;
}

constexpr std::size_t kMostHead = 16U << 10U;
constexpr std::size_t kMostReason = 200;
constexpr std::size_t kChunk = 64U << 10U;
using Chunk = std::array<char, kChunk>;

bool is_ready(const Descriptor& connection, short events, Nanoseconds patience) {
  pollfd ready{connection.number(), events, 0};
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  return poll(&ready, 1, static_cast<int>(limit)) != 0;
}

/// The next bytes; none at the end.
Result<std::string_view> next(const Descriptor& connection, Chunk& chunk, Nanoseconds patience) {
  if (!is_ready(connection, POLLIN, patience)) return Error("the process sends no trace");
  const ssize_t got = recv(connection.number(), chunk.data(), chunk.size(), 0);
  if (got < 0) return system_error("the connection to the process");
  return std::string_view(chunk.data(), static_cast<std::size_t>(got));
}

/// A request fits into the buffer of a new connection.
Result<Done> send_request(const Descriptor& connection, std::string_view request, Nanoseconds patience) {
  if (!is_ready(connection, POLLOUT, patience)) return Error("the process does not accept the connection");
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(connection.number(), SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  if (error != 0) return system_error("the connection to the process");
  const ssize_t sent = send(connection.number(), request.data(), request.size(), MSG_NOSIGNAL);
  if (sent != std::ssize(request)) return system_error("the connection to the process");
  return Done{};
}

bool is_named(std::string_view line, std::string_view name) {
  return line.size() > name.size() &&
         std::ranges::equal(line.substr(0, name.size()), name, [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         });
}

/// The first line of an answer that is an error, such as "Handler torch_profile failed: ...".
std::string reason_of(std::string_view body, int status) {
  const std::string_view line = trimmed(take_until(body, '\n'));
  return "the process answers with HTTP status " + std::to_string(status) +
         (line.empty() ? "" : ": " + readable(line.substr(0, kMostReason), is_control));
}

Result<Done> write_all(const Descriptor& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error("the file of the trace");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return Done{};
}

/// The head and, in `text`, the start of the body.
Result<AnswerHead> read_head(const Descriptor& connection, std::string& text, Nanoseconds patience) {
  Chunk chunk;
  while (true) {
    if (const std::size_t end = text.find("\r\n\r\n"); end != std::string::npos) {
      const AnswerHead head = parse_answer_head(std::string_view(text).substr(0, end));
      text.erase(0, end + 4);
      return head;
    }
    const Result<std::string_view> bytes = next(connection, chunk, patience);
    if (!bytes) return bytes.error();
    if (bytes->empty() || text.size() > kMostHead) return Error("the process ended the connection");
    text.append(*bytes);
  }
}

std::string some_of_body(const Descriptor& connection, Nanoseconds patience) {
  Chunk chunk;
  const Result<std::string_view> bytes = next(connection, chunk, patience);
  return std::string(bytes ? *bytes : "");
}

Result<Done> copy_body(const Descriptor& connection, const Descriptor& file, std::string_view bytes,
                       std::uint64_t length, Nanoseconds patience) {
  Chunk chunk;
  while (true) {
    bytes = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), length));
    if (Result<Done> written = write_all(file, bytes); !written) return written;
    length -= bytes.size();
    if (length == 0) return Done{};
    const Result<std::string_view> more = next(connection, chunk, patience);
    if (!more) return more.error();
    if (more->empty()) return Error("the process ended the connection within the trace");
    bytes = *more;
  }
}

}  // namespace

Result<Descriptor> create(const Folder& folder, const std::string& name, const TraceFile& file) {
  constexpr mode_t kOwnOnly = 0600;
  Result<Descriptor> out = folder.create(name, kOwnOnly);
  if (!out || !file.reader) return out;
  if (geteuid() == 0) {
    if (fchown(out->number(), *file.reader, static_cast<gid_t>(-1)) != 0) return system_error(file.path);
  } else if (geteuid() != *file.reader) {
    const AccessList list = readable_by(*file.reader);
    [[maybe_unused]] const int ignored =
        fsetxattr(out->number(), "system.posix_acl_access", &list, sizeof list, 0);
  }
  return out;
}

Result<Done> make_room(const std::string& path, std::uint64_t most) {
  constexpr mode_t kListable = 0755;
  const Result<Folder> folder = Folder::make(path, kListable);
  if (!folder) return folder.error();
  std::uint64_t bytes = 0;
  for (const Trace& trace : traces_in(*folder)) {
    bytes += trace.size;
    if (bytes > most) {
      [[maybe_unused]] const Result<Done> ignored = folder->remove(trace.name);
    }
  }
  return Done{};
}

AnswerHead parse_answer_head(std::string_view text) {
  AnswerHead head;
  std::string_view first = take_until(text, '\n');
  take_until(first, ' ');
  head.status = parse_number<int>(take_until(first, ' ')).value_or(0);
  while (!text.empty()) {
    std::string_view line = trimmed(take_until(text, '\n'));
    if (!is_named(line, "content-length:")) continue;
    take_until(line, ':');
    head.length = parse_number<std::uint64_t>(trimmed(line));
  }
  return head;
}

Result<std::uint64_t> fetch_to_file(const Descriptor& connection, std::string_view request,
                                    const TraceFile& file, Nanoseconds patience) {
  if (const Result<Done> sent = send_request(connection, request, patience); !sent) return sent.error();
  std::string text;
  const Result<AnswerHead> head = read_head(connection, text, patience);
  if (!head) return head.error();
  constexpr int kOk = 200;
  if (head->status != kOk) {
    const bool follows = text.empty() && head->length.value_or(0) > 0;
    return Error(reason_of(follows ? some_of_body(connection, patience) : text, head->status));
  }
  if (!head->length || *head->length == 0) return Error("the process sends an empty trace");
  if (*head->length > file.most) {
    return Error("the trace has " + std::to_string(*head->length) + " bytes, more than " +
                 std::to_string(file.most));
  }
  const PathOfFile at(file.path);
  const Result<Folder> folder = Folder::open(at.folder);
  if (!folder) return folder.error();
  const Result<Descriptor> out = create(*folder, at.name, file);
  if (!out) return out.error();
  const Result<Done> copied = copy_body(connection, *out, text, *head->length, patience);
  if (copied) return *head->length;
  [[maybe_unused]] const Result<Done> ignored = folder->remove(at.name);
  return copied.error();
}

}  // namespace gpumeter::profiles
