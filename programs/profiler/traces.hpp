#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/folder.hpp"
#include "base/result.hpp"

namespace gpumeter::profiles {

/// The file of a trace that gpumeter writes, in place of the job.
struct TraceFile {
  std::string path;
  /// uid of the job's user, who may read the file. nullopt: the file is the folder's owner's.
  std::optional<std::uint32_t> reader;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();  ///< bytes; no larger trace is written
};

/// Creates the file, which must not exist. With a reader: as root the file belongs to the reader, otherwise
/// the reader is in its access control list (acl(5)); if the file system has no such lists, the reader cannot
/// open it. Blocks as the file system does.
Result<Descriptor> create(const Folder& folder, const std::string& name, const TraceFile& file);

/// Creates the folder, which every user may list, if it is missing. Removes the oldest traces in it until the
/// rest have at most `most` bytes. Blocks as the file system does.
Result<Done> make_room(const std::string& path, std::uint64_t most);

/// The head of an HTTP answer.
struct AnswerHead {
  int status = 0;                       ///< 0: it is not one
  std::optional<std::uint64_t> length;  ///< of the body, if the server names it
};

/// Parses the lines before the body. Any bytes.
AnswerHead parse_answer_head(std::string_view text);

/// Sends the request to an HTTP server on a non-blocking connection, which may be under way, and writes the
/// body of the answer to a new file. Returns the size of the body. Returns an Error, and leaves no file,
/// unless the status is 200 and the body is complete. Ends if the server sends nothing for `patience`.
/// Blocks; a thread of the command, or one of its own.
Result<std::uint64_t> fetch_to_file(const Descriptor& connection, std::string_view request,
                                    const TraceFile& file, Nanoseconds patience);

/// The traces that the program writes itself: those that conditions take from PyTorch's debug server, which
/// returns the trace and has no client that would write it. Each has a thread ("trace-fetch"), because the
/// process and the folder may both be slow. One thread.
class Fetches {
 public:
  /// A trace of a few seconds of a large model has hundreds of MB. The job chooses its size.
  static constexpr std::uint64_t kMostBytes = 512ULL << 20;
  /// Of all traces in the folder; the oldest ones make room.
  static constexpr std::uint64_t kMostInFolder = 4 * kMostBytes;

  struct Order {
    Descriptor connection;    ///< non-blocking; may be under way
    std::string socket = {};  ///< path of a Unix socket to connect to, if there is no connection
    std::string request;
    std::string path;          ///< of the file
    std::uint32_t reader = 0;  ///< uid of the job's user
    Nanoseconds patience{};    ///< the longest silence of the process
  };
  struct Ended {
    int pid = 0;
    std::string error;  ///< empty: the file is written
  };

  /// `clock` must outlive the threads.
  explicit Fetches(const Clock& clock);
  /// Ends all threads without waiting for them.
  ~Fetches();
  Fetches(const Fetches&) = delete;
  Fetches& operator=(const Fetches&) = delete;

  /// Begins with the trace of a process.
  void start(int pid, Order order);
  /// Returns those that have ended, once.
  std::vector<Ended> take_ended();
  /// Ends and forgets the fetch of a process, if there is one. An incomplete file is removed.
  void stop(int pid);

 private:
  class Call;

  const Clock& clock_;
  std::map<int, std::unique_ptr<Call>> calls_;  ///< by pid
};

}  // namespace gpumeter::profiles
