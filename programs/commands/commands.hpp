#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/program.hpp"
#include "base/result.hpp"
#include "collectors/attribution/names/manual_file.hpp"
#include "config/config.hpp"
#include "exporter/health/report.hpp"
#include "exporter/http/settings.hpp"
#include "programs/client/http.hpp"

/// What the commands `check`, `record`, `allocate`, `forget`, `explain` and `bundle` do, each in its own
/// source; main.cpp reads their words.
namespace gpumeter {

/// What --fail-on makes of degraded GPUs.
enum class FailOn : std::uint8_t {
  each,      ///< degraded: warning; failed: critical
  failed,    ///< degraded counts as ok
  degraded,  ///< degraded counts as critical
};

/// The daemon that a command asks.
struct DaemonToAsk {
  std::string url;         ///< empty: the first address of web.listen
  std::string ca_file;     ///< empty: the system's authorities
  std::string login_file;  ///< empty: no user

  /// Reads the file. The Error names the file or the url.
  Result<client::Address> address(const config::Config& config) const {
    return client::parse_address(url.empty() ? config.of<HttpSettings>().listen.front() : url, ca_file,
                                 login_file);
  }
};

/// The flags of `gpumeter check`.
struct CheckOptions {
  DaemonToAsk daemon;
  bool json = false;
  std::optional<unsigned> gpu;  ///< nullopt: all
  FailOn fail_on = FailOn::each;
  std::string suite;  ///< one of suite_names(); empty: all conditions
};

/// The exit codes of monitoring plugins.
enum class CheckStatus : std::uint8_t { ok = 0, warning = 1, critical = 2, unknown = 3 };

/// Returns the status of a whole report. Unknown devices make it unknown, unless something worse is known.
CheckStatus check_status(const health::Report& report, FailOn fail_on);

/// Returns a line as monitoring plugins print it, "GPU CRITICAL - 1 of 8 GPUs failed: GPU 0 xid_79 (reboot) |
/// ok=7 degraded=0 failed=1 unknown=0", and one line for each finding and each device that is not read.
std::string check_text(const health::Report& report, CheckStatus status);

/// Returns the names of the suites: the checks of other programs, by the conditions that cover them.
std::vector<std::string> suite_names();

/// Returns the line for a check without a result.
std::string unknown_text(const std::string& reason);

/// Runs `gpumeter check`: asks the running daemon for its judgement, or reads the GPUs itself if none runs.
/// Prints the result and returns the exit code of monitoring plugins. Ends the process with 3 (unknown) if a
/// driver or a name service does not answer for 30 s.
int check(const CheckOptions& options, const config::Config& config);

/// Prints that the check has no result, and returns 3.
int check_is_unknown(const CheckOptions& options, const std::string& reason);

/// The words of `gpumeter record`.
struct RecordOptions {
  DaemonToAsk daemon;
  std::string file;
  std::optional<Duration> length;  ///< nullopt: until a signal
};

/// Writes the full page of the daemon to a new file, once a second (pages::Recording). While the daemon does
/// not answer, the file has empty pages; without an answer to the first question there is no file. SIGINT and
/// SIGTERM end it. Returns the text to print.
Result<std::string> record(const RecordOptions& options, const config::Config& config, Signals& signals);

/// The words of `gpumeter allocate`.
struct AllocateOptions {
  enum class Verb : std::uint8_t { list, set, clear };
  Verb verb = Verb::list;
  workloads::WorkloadId workload{cgroup::Kind::other, ""};
  std::string user;               ///< empty: unknown
  std::vector<std::string> gpus;  ///< each a uuid, a PCI address, or an index as in the label gpu
};

/// Carries out the command in the folder `allocations.manual`, which is created; the daemon reads it every
/// second, so that the command also works while no daemon runs. `state`: paths.state, for indexes. Returns
/// the text to print.
Result<std::string> allocate(const AllocateOptions& options, const std::string& folder,
                             const std::string& state);

/// For a command of the administrator that was refused: unless it runs as root, root may succeed.
Error with_advice(const Error& error);

/// Forgets a device: asks the daemon that uses the state folder, or edits the folder's file if no daemon
/// does. Waits a few seconds for a daemon that does not answer. The Error states why the device is still
/// known. Blocks for as long as the folder does.
Result<Done> forget_device(const std::string& folder, const std::string& uuid);

/// The same on a thread of its own. If the folder hangs, the result is an Error after kForgetPatience, and
/// the thread stays behind: the caller must leave the process by _exit().
inline constexpr std::chrono::seconds kForgetPatience{10};
Result<Done> forget_device_in_time(const std::string& folder, const std::string& uuid, const Clock& clock);

/// The words of `gpumeter explain`.
struct ExplainOptions {
  bool json = false;
  std::string kind;  ///< "xid", "sxid", "reason"; empty: explain the log on standard input
  std::string word;  ///< the code or the reason
};

/// Prints the events of the log on standard input, each as soon as its line was read, or what a code or a
/// reason means. Needs no configuration and no GPU.
Result<Done> explain(const ExplainOptions& options);

/// The words of `gpumeter bundle`.
struct BundleOptions {
  DaemonToAsk daemon;
  std::string file;         ///< empty: named by the time, in the working directory
  std::string log;          ///< empty: the journal's
  bool lists_only = false;  ///< writes nothing
};

/// Prints what a bug report would have, then writes it as one archive, which must not exist. null: the
/// configuration is wrong. A call of a driver may be left behind, so the process must end by _exit().
Result<Done> make_bundle(const BundleOptions& options, const config::Config* config, const Clock& clock);

}  // namespace gpumeter
