#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/proc.hpp"
#include "base/result.hpp"
#include "base/users.hpp"
#include "collectors/jobs/intake/sockets.hpp"
#include "collectors/jobs/join/run_join.hpp"
#include "collectors/jobs/wire/sender.hpp"
#include "programs/profiler/desk.hpp"

/// The text that `gpumeter profile` and gpumeter-profiler exchange over a Unix stream socket. A request is
/// lines of a word and its value, and an empty line:
///
///   run NAME | pid NUMBER
///   steps NUMBER | milliseconds NUMBER
///   folder PATH          (optional)
///
/// The program answers `refused REASON`, or `file PID PATH` for each process and then `accepted WHEN`. The
/// lines `taken PID`, `done PID PATH`, `failed PID REASON` follow as they happen, and `end STATUS` is the
/// last line. The line `fetch PID UID` has the connection to a process attached (SCM_RIGHTS), and `fetch PID
/// UID PATH` names the Unix socket to which the client connects: the client sends debug_request() there,
/// writes the file of PID for the user, and sends `got PID` or `lost PID REASON`. It sends the same once it
/// has looked for the file after `done`: only the user sees whether the process could write it. The client
/// withdraws its request by closing the connection. Any thread.
namespace gpumeter::profiles {

struct Asked {
  std::string run;         ///< empty: `pid`
  std::optional<int> pid;  ///< as the client sees it
  Extent extent;
  std::string folder;  ///< empty: `profiles.folder`
};

inline constexpr std::size_t kMostAsked = 4096;
inline constexpr unsigned kMostSteps = 1000;
inline constexpr std::chrono::seconds kLongestTrace{300};

/// Returns the request in its lines.
std::string text_of(const Asked& asked);
/// Parses a complete request, including the empty line.
Result<Asked> parse_asked(std::string_view text);

/// Returns the path of an order: folder/gpumeter_RUN_RANDOM.json. Nobody can predict the random number, so
/// nobody can put a link there. Returns an Error if the folder is not usable.
Result<std::string> path_in(std::string_view folder, std::string_view run);
/// True if path_in() gives such a name to a file, of plain characters only.
bool is_trace_name(std::string_view name);

/// The connections of `gpumeter profile` to the program. If all places are
/// taken, one of the user with the most makes room. Thread "profiles".
class Callers {
 public:
  using OwnerOf = std::function<std::uint32_t(std::uint32_t uid)>;

  static constexpr std::size_t kMost = 64;
  static constexpr std::size_t kMostOfUser = 16;
  /// The longest time for a client to send its request.
  static constexpr Nanoseconds kPatience = std::chrono::seconds(5);

  /// A complete request of a connection.
  struct Call {
    int number = 0;
    std::string text;
    Desk::Number request = 0;  ///< not 0: `text` is a line about this request, without its end
  };

  explicit Callers(OwnerOf owner_of) : owner_of_(std::move(owner_of)) {}

  /// Takes the connections that wait. Returns false if no descriptor is left for one; the listener stays
  /// readable then.
  bool accept_from(int listener, Nanoseconds now);
  /// Reads a connection. Returns the lines about the request to which it is bound.
  std::vector<Call> read(int number);
  /// A connection has sent a complete request, which take_requests() returns.
  bool have_asked() const;
  std::vector<Call> take_requests();
  /// Who connected. Valid until the connection is closed.
  const PeerProcess& process(int number) const { return open_.at(number).process; }
  /// The connection waits for the events of this request from now on.
  void bind_to(int number, Desk::Number request) { open_.at(number).request = request; }
  /// Sends a line to a connection. Closes it if the line does not fit into the socket's buffer.
  void tell(int number, std::string_view line);
  /// The same, to the connection that waits for this request.
  void tell_about(Desk::Number request, std::string_view line);
  /// The same, with a descriptor attached. Returns false if no connection waits for the request.
  bool pass_about(Desk::Number request, std::string_view line, const Descriptor& attached);
  void close(int number);
  void close_about(Desk::Number request);
  /// Closes connections that send no request. Returns the requests whose clients have left since the last
  /// call.
  std::vector<Desk::Number> tick(Nanoseconds now);
  /// The descriptors to wait for.
  std::vector<int> numbers() const;

 private:
  struct Open {
    Descriptor descriptor;
    PeerProcess process;
    std::uint32_t payer = 0;
    Nanoseconds since{};
    std::string text;
    Desk::Number request = 0;  ///< 0: none yet
    bool is_whole = false;     ///< `text` is a request that nobody has taken yet
  };

  static std::vector<Call> lines_of(int number, Open& open);
  bool make_room(std::uint32_t payer);
  void end(int number);

  const OwnerOf owner_of_;
  std::map<int, Open> open_;
  Shares<std::uint32_t> shares_;  ///< of open_
  std::vector<Desk::Number> left_;
};

/// Who asks for a profile.
struct Asker {
  int pid = 0;
  std::uint32_t uid = 0;
  Result<std::vector<int>> numbers;  ///< PeerProcess::numbers()
};

/// Finds the processes that a request is about. Reads a few small files of /proc. Thread "profiles".
///
/// The processes of a run are those that report it. If none of them can be asked, those that jobs::RunOwners
/// assigns to the run count, but not the launcher of processes that do.
///
/// A user may ask for the processes with his uid, or a subordinate uid of his; root for all. A client in
/// another pid namespace, such as that of a container, may ask only for processes in its own cgroup: uid 0 of
/// a container is root to the kernel, and the users of two containers may have the same uid. A client whose
/// namespaces or cgroup are not known gets nothing.
class Targets {
 public:
  struct Sources {
    std::string procfs;
    std::function<std::uint32_t(std::uint32_t uid)> owner_of;
    std::function<std::string(std::uint32_t uid)> name_of;
    std::vector<std::string> users;  ///< names or uids whose jobs may be profiled; empty: all
  };
  /// The processes of one run.
  struct Found {
    RunName run;
    std::vector<Member> members;
  };

  /// The most processes of a run that take a trace at once. The others of a run do the same work.
  static constexpr std::size_t kMostMembers = 8;

  /// `doors`: in the order of preference, if a process is known to several.
  Targets(Sources sources, std::vector<Door*> doors)
      : sources_(std::move(sources)), doors_(std::move(doors)), kin_(sources_.procfs), owners_(kin_) {}

  Result<Found> find(const Asked& asked, const Asker& asker, const std::shared_ptr<const jobs::RunList>& runs,
                     Nanoseconds now);
  /// Returns one process of the run for a condition's profile, one of `preferred` (pids) if there is one; an
  /// empty list if none can be asked or the user is not admitted.
  Found first_of(const RunName& run, const std::set<int>& preferred,
                 const std::shared_ptr<const jobs::RunList>& runs, Nanoseconds now);
  bool is_alive(int pid) const;

 private:
  /// A process that can be asked, with its run.
  struct Candidate {
    Process process;
    Door* door = nullptr;
    std::vector<int> numbers;
    std::vector<RunName> runs;
    bool reports = false;  ///< it reports a run itself; otherwise it is a relative, such as the launcher
  };

  std::vector<Candidate> candidates(const std::function<bool(const Process&)>& is_wanted,
                                    const std::shared_ptr<const jobs::RunList>& runs, Nanoseconds now);
  Candidate candidate(const Process& process, Door& door, const jobs::RunList& runs);
  static std::vector<const Candidate*> of_run(const std::function<bool(const RunName&)>& is_it,
                                              const std::vector<Candidate>& from);
  bool is_admitted(std::uint32_t uid) const;
  std::vector<int> numbers_of(int pid) const;
  static Member member_of(const Candidate& candidate);
  Result<Found> of_pid(int pid, std::size_t depth, const std::vector<Candidate>& from) const;
  Result<Found> of_run(const std::string& run, const std::vector<Candidate>& from) const;

  const Sources sources_;
  const std::vector<Door*> doors_;
  jobs::ProcessKin kin_;
  jobs::RunOwners owners_;
};

}  // namespace gpumeter::profiles
