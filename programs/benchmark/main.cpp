#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/command_line.hpp"
#include "base/options.hpp"
#include "base/text.hpp"
#include "collectors/sources/pci.hpp"
#include "programs/benchmark/blas.hpp"
#include "programs/benchmark/guard.hpp"
#include "programs/benchmark/measure.hpp"
#include "programs/benchmark/opencl.hpp"
#include "programs/benchmark/report.hpp"
#include "programs/client/http.hpp"

namespace gpumeter::benchmark {
namespace {

/// After this the process that computes is killed.
constexpr std::chrono::milliseconds kLongest{20'000};
/// The tests' own limit: the last test and its verification end after it.
constexpr std::chrono::milliseconds kLongestTests{17'000};

/// The validated command line.
struct Options {
  std::vector<std::string> gpus;  ///< numbers, uuids or PCI addresses; empty: all
  bool cpu = false;               ///< measure OpenCL's processor instead of a GPU
  std::string report_as;          ///< with `cpu`: the uuid of the GPU under which the result is reported
  bool opencl = true;
  bool blas = true;
  std::chrono::milliseconds time = kLongestTests;  ///< of one GPU's tests
  client::Address address;
  std::string jobs_socket;  ///< empty: nothing is sent
  std::string history;      ///< a folder
  std::string lock;
  std::vector<std::string> library_paths;  ///< folders with the vendors' libraries
  bool json = false;

  bool needs_daemon() const noexcept { return !cpu || !report_as.empty(); }
};

constexpr std::chrono::milliseconds kShortest{1000};

constexpr std::string_view kProgram = "gpumeter-benchmark";

/// systemd names the folder of StateDirectory= in the environment.
std::string default_history() {
  const char* const folder = std::getenv("STATE_DIRECTORY");
  return folder == nullptr ? "/var/lib/gpumeter-benchmark" : folder;
}

std::vector<Flag> flags() {
  constexpr std::string_view kGroup = "Options";
  return {
      {"--help", "", "Print this help", kGroup},
      {"--gpu", "GPU", "Measure this GPU: its number, uuid or PCI address; may be repeated (default: all)",
       kGroup},
      {"--cpu", "", "Measure the processor by OpenCL (PoCL) instead, to try out the program", kGroup},
      {"--report-as", "UUID", "With --cpu: report the result under the uuid of this GPU, for tests", kGroup},
      {"--backend",
       "WORD",
       "opencl, blas (cuBLAS, rocBLAS) or all (default all)",
       kGroup,
       {"opencl", "blas", "all"}},
      {"--time", "TIME", "Time of the tests of one GPU, 1s to 17s (default 17s)", kGroup},
      {"--url", "URL", "Address of the daemon (default http://localhost:10478)", kGroup},
      {"--ca-file", "FILE", "Trust these authorities (PEM) for https (default: the system's)", kGroup},
      {"--login-file", "FILE", "A user for the daemon: USER:PASSWORD in the first line", kGroup},
      {"--jobs-socket", "FILE", "The daemon's socket for results (default /run/gpumeter/jobs.sock)", kGroup},
      {"--no-send", "", "Send no results to the daemon", kGroup},
      {"--history", "FOLDER", "Folder of earlier results (default /var/lib/gpumeter-benchmark)", kGroup},
      {"--lock", "FILE", "The lock of all benchmarks (default /run/gpumeter/benchmark.lock)", kGroup},
      {"--library-path", "FOLDER", "Search the vendor's libraries in this folder first; may be repeated",
       kGroup},
      {"--json", "", "Print JSON instead of a table", kGroup},
      {"--version", "", "Print the version", kGroup},
  };
}

std::variant<Options, Exit> options_of(const CommandLine& line) {
  Options options;
  Result<client::Address> address = client::parse_address(
      line.value("--url", "http://localhost:10478"), line.value("--ca-file"), line.value("--login-file"));
  if (!address) return usage_error(address.error().message(), kProgram);
  options.address = *std::move(address);
  const std::string text = line.value("--time", "17s");
  const auto time = parse_duration(text);
  if (!time || *time < kShortest || *time > kLongestTests)
    return usage_error("--time: must be 1s to 17s, not " + gpumeter::quoted(options::printable(text)),
                       kProgram);
  options.time = *time;
  options.opencl = line.value("--backend") != "blas";
  options.blas = line.value("--backend") != "opencl";
  options.gpus = line.values("--gpu");
  options.cpu = line.is_on("--cpu");
  options.report_as = line.value("--report-as");
  if (!options.report_as.empty() && !options.cpu)
    return usage_error("--report-as: only with --cpu", kProgram);
  if (options.cpu && !options.gpus.empty()) return usage_error("--cpu: not with --gpu", kProgram);
  if (!line.is_on("--no-send")) options.jobs_socket = line.value("--jobs-socket", "/run/gpumeter/jobs.sock");
  options.history = line.value("--history", default_history());
  options.lock = line.value("--lock", "/run/gpumeter/benchmark.lock");
  options.library_paths = line.values("--library-path");
  options.json = line.is_on("--json");
  return options;
}

std::variant<Options, Exit> parse_options(std::span<const char* const> arguments) {
  const std::vector<Flag> known = flags();
  const CommandLine line(known, arguments);
  std::optional<Exit> exit = early_exit(
      line, kProgram, "Measures the GPUs that nobody uses, and reports the results to gpumeter.", known);
  if (exit) return *std::move(exit);
  return options_of(line);
}

/// Exit codes of the program. The service counts 3 and 4 as success.
constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;       ///< a wrong result, or the program could not work
constexpr int kExitGaveWay = 3;      ///< every GPU that was begun was needed by another process
constexpr int kExitNotMeasured = 4;  ///< no GPU was free

/// $GPUMETER_BENCHMARK_SLICE: the time of one test, such as 20ms, so that a test of the whole program
/// computes no longer than the fewest runs take. Not a flag, because rates of so few runs are of no use.
Pace::Clock::duration slice(Duration most) {
  const char* const text = std::getenv("GPUMETER_BENCHMARK_SLICE");
  const std::optional<Duration> shorter = parse_duration(text == nullptr ? "" : text);
  return std::min(Pace::share_of(most), Pace::Clock::duration(shorter.value_or(most)));
}

/// Loads the drivers' libraries and measures. For a process of its own: the drivers start threads, and some
/// never end.
Outcome work_on(const Options& options, const Gpu& gpu, const std::vector<pci::Address>& idle_peers) {
  const Pace pace(options.time, slice(options.time));
  const std::optional<pci::Address> address = pci::parse_address(gpu.pci_address);
  Outcome outcome;
  if (options.opencl && (options.cpu || address))
    opencl::measure({options.cpu, address.value_or(pci::Address{}), idle_peers}, pace, outcome);
  if (options.blas && address)
    blas::measure(options.library_paths, *address, pace, faults_of_environment(), outcome);
  return outcome;
}

using SteadyClock = std::chrono::steady_clock;

/// The service's TimeoutStartSec= is 90 s.
constexpr std::chrono::seconds kLongestStart{80};

volatile std::sig_atomic_t asked_to_stop = 0;

void complain(const std::string& text) { std::fprintf(stderr, "gpumeter-benchmark: %s\n", text.c_str()); }

/// One start of the program.
class Session {
 public:
  Session(const Options& options, Lock lock)
      : options_(options), lock_(std::move(lock)), daemon_(options.address), history_(options.history) {}

  Result<Done> choose() {
    if (!options_.needs_daemon()) return chosen_.emplace_back().model = "processor", Done{};
    Result<std::vector<Gpu>> gpus = daemon_.gpus();
    while (!gpus && SteadyClock::now() < begin_ + kLongestSilence) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      gpus = daemon_.gpus();
    }
    if (!gpus) return gpus.error();
    all_ = *std::move(gpus);
    const std::vector<std::string> named = options_.cpu ? std::vector{options_.report_as} : options_.gpus;
    if (named.empty()) chosen_ = all_;
    for (const std::string& name : named) {
      const Gpu* const found = find_gpu(all_, name);
      if (found == nullptr) return Error("the daemon has no GPU " + name);
      chosen_.push_back(*found);
    }
    return Done{};
  }

  void measure_all() {
    std::ranges::stable_sort(chosen_, {}, [&](const Gpu& gpu) { return history_.last_run(gpu.uuid); });
    for (const Gpu& gpu : chosen_) {
      reports_.push_back(measure(gpu));
      keep(reports_.back());
    }
  }

  void print() const {
    std::fputs((options_.json ? json_text(reports_) : table_text(reports_)).c_str(), stdout);
  }

  int exit_code() const {
    const auto has = [&](Status status) {
      return std::ranges::find(reports_, status, &Report::status) != reports_.end();
    };
    if (has(Status::failed)) return kExitFailed;
    if (has(Status::ok)) return kExitOk;
    return has(Status::preempted) ? kExitGaveWay : kExitNotMeasured;
  }

 private:
  Report measure(const Gpu& gpu) {
    Report report{.gpu = gpu, .status = Status::not_measured};
    std::vector<Watch> watches;
    if (options_.needs_daemon()) watches = watches_of(daemon_, gpu);
    if (const auto reason = why_not_now(gpu, watches)) return report.reason = *reason, report;
    const auto begin = SteadyClock::now();
    const Supervised done = supervise([&] { return work_on(options_, gpu, idle_peers_of(gpu)); }, kLongest,
                                      [&](int own) { return reason_to_give_way(watches, own); });
    report.seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
    report.timestamp = to_seconds(SystemClock().realtime());
    judge(report, done);
    return report;
  }

  static void judge(Report& report, const Supervised& done) {
    report.outcome = done.outcome;
    report.reason = done.reason;
    if (done.end == End::gave_way) {
      report.status = Status::preempted;
      report.reason += ", so the benchmark gave way and discarded its results";
    } else if (done.end == End::stopped) {
      report.status = Status::failed;
    } else if (!report.outcome.failures.empty()) {
      report.status = Status::failed;
      report.reason = report.outcome.failures[0];
    } else if (report.outcome.measurements.empty()) {
      report.reason = "no library on this machine can measure it";
    } else {
      report.status = Status::ok;
    }
  }

  std::optional<std::string> why_not_now(const Gpu& gpu, const std::vector<Watch>& watches) {
    if (SteadyClock::now() + kLongest > begin_ + kLongestStart) return "the time of this start is over";
    if (options_.needs_daemon()) {
      if (auto reason = why_not(gpu)) return reason;
    }
    return reason_to_give_way(watches, 0);
  }

  std::optional<std::string> reason_to_give_way(const std::vector<Watch>& watches, int own) {
    if (asked_to_stop != 0) return "a signal asked it to stop";
    if (lock_.is_wanted()) return "another process opened " + options_.lock;
    for (const Watch& watch : watches) {
      if (auto reason = watch(own)) return reason;
    }
    return std::nullopt;
  }

  /// GPUs that nobody uses, for transfers between two.
  std::vector<pci::Address> idle_peers_of(const Gpu& gpu) const {
    std::vector<pci::Address> peers;
    for (const Gpu& peer : all_) {
      const auto address = pci::parse_address(peer.pci_address);
      if (address && peer.uuid != gpu.uuid && !why_not(peer)) peers.push_back(*address);
    }
    return peers;
  }

  void keep(Report& report) {
    if (const auto kept = history_.record(report); !kept) complain(kept.error().message());
    const std::string text = options_.jobs_socket.empty() ? "" : datagram(report);
    if (text.empty()) return;
    if (const auto sent = send_to(options_.jobs_socket, text); !sent)
      complain("the results were not sent to the daemon: " + sent.error().message());
  }

  const Options& options_;
  Lock lock_;
  Daemon daemon_;
  const History history_;
  const SteadyClock::time_point begin_ = SteadyClock::now();
  std::vector<Gpu> all_, chosen_;
  std::vector<Report> reports_;
};

void stop_on_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { asked_to_stop = 1; };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

/// Measures the GPUs one after the other, those with the oldest result first, and prints, sends and keeps the
/// results. Ends at the latest 80 s after its start; GPUs that are left are first next time. Main thread; the
/// process must have no other thread, because it forks.
int run(const Options& options) {
  stop_on_signals();
  Result<Lock> lock = Lock::take(options.lock);
  if (!lock) return complain(lock.error().message()), kExitNotMeasured;
  Session session(options, *std::move(lock));
  if (const auto chosen = session.choose(); !chosen) return complain(chosen.error().message()), kExitFailed;
  session.measure_all();
  session.print();
  return session.exit_code();
}

}  // namespace
}  // namespace gpumeter::benchmark

int main(int argc, char** argv) {
  using namespace gpumeter::benchmark;
  try {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    const auto parsed = parse_options(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
    if (const auto* exit = std::get_if<gpumeter::Exit>(&parsed)) return gpumeter::print(*exit);
    return run(std::get<Options>(parsed));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "gpumeter-benchmark: %s\n", problem.what());
    return kExitFailed;
  }
}
