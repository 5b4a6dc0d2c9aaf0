#include <curl/curl.h>

#include <CLI/CLI.hpp>
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
#include "base/text.hpp"
#include "build_info.hpp"
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
  client::Access access;
  std::string jobs_socket;  ///< empty: nothing is sent
  std::string history;      ///< a folder
  std::string lock;
  std::vector<std::string> library_paths;  ///< folders with the vendors' libraries
  bool json = false;

  bool needs_daemon() const noexcept { return !cpu || !report_as.empty(); }
};

/// An exit before the start. The text goes to stdout if the code is 0 (help, version), otherwise to stderr.
struct Exit {
  int code;
  std::string text;
};

constexpr std::chrono::milliseconds kShortest{1000};

Exit usage_error(const std::string& sentence) {
  return {2, "gpumeter-benchmark: " + sentence + "\nTry 'gpumeter-benchmark --help'.\n"};
}

/// systemd names the folder of StateDirectory= in the environment.
std::string default_history() {
  const char* const folder = std::getenv("STATE_DIRECTORY");
  return folder == nullptr ? "/var/lib/gpumeter-benchmark" : folder;
}

/// The texts of the flags that need a check.
struct Texts {
  std::string url = "http://localhost:10478";
  std::string time = "17s";
  std::string backend = "all";
  std::string login_file;
  bool no_send = false;
};

void add_flags(CLI::App& app, Options& options, Texts& texts) {
  app.set_help_flag("-h,--help", "Print this help");
  app.add_option("--gpu", options.gpus,
                 "Measure this GPU: its number, uuid or PCI address; may be repeated (default: all)")
      ->type_name("GPU");
  app.add_flag("--cpu", options.cpu,
               "Measure the processor by OpenCL (PoCL) instead, to try out the program");
  app.add_option("--report-as", options.report_as,
                 "With --cpu: report the result under the uuid of this GPU, for tests")
      ->type_name("UUID");
  app.add_option("--backend", texts.backend, "opencl, blas (cuBLAS, rocBLAS) or all (default all)")
      ->type_name("WORD");
  app.add_option("--time", texts.time, "Time of the tests of one GPU, 1s to 17s (default 17s)")
      ->type_name("TIME");
  app.add_option("--url", texts.url, "Address of the daemon (default http://localhost:10478)")
      ->type_name("URL");
  app.add_option("--ca-file", options.access.ca_file,
                 "Trust these authorities (PEM) for https (default: the system's)")
      ->type_name("FILE");
  app.add_option("--login-file", texts.login_file, "A user for the daemon: USER:PASSWORD in the first line")
      ->type_name("FILE");
  app.add_option("--jobs-socket", options.jobs_socket,
                 "The daemon's socket for results (default /run/gpumeter/jobs.sock)")
      ->type_name("FILE");
  app.add_flag("--no-send", texts.no_send, "Send no results to the daemon");
  app.add_option("--history", options.history,
                 "Folder of earlier results (default /var/lib/gpumeter-benchmark)")
      ->type_name("FOLDER");
  app.add_option("--lock", options.lock, "The lock of all benchmarks (default /run/gpumeter/benchmark.lock)")
      ->type_name("FILE");
  app.add_option("--library-path", options.library_paths,
                 "Search the vendor's libraries in this folder first; may be repeated")
      ->type_name("FOLDER");
  app.add_flag("--json", options.json, "Print JSON instead of a table");
}

std::variant<Options, Exit> checked(Options options, const Texts& texts) {
  const Result<client::Address> address = client::parse_address(texts.url);
  if (!address)
    return usage_error("--url: " + gpumeter::quoted(texts.url) + ": " + address.error().message());
  options.address = *address;
  if (!texts.login_file.empty()) {
    Result<Login> login = read_login(texts.login_file);
    if (!login) return usage_error("--login-file: " + login.error().message());
    options.access.login = *std::move(login);
  }
  const auto time = parse_duration(texts.time);
  if (!time || *time < kShortest || *time > kLongestTests)
    return usage_error("--time: must be 1s to 17s, not " + gpumeter::quoted(texts.time));
  options.time = *time;
  if (texts.backend != "all" && texts.backend != "opencl" && texts.backend != "blas")
    return usage_error("--backend: must be opencl, blas or all, not " + gpumeter::quoted(texts.backend));
  options.opencl = texts.backend != "blas";
  options.blas = texts.backend != "opencl";
  if (!options.report_as.empty() && !options.cpu) return usage_error("--report-as: only with --cpu");
  if (options.cpu && !options.gpus.empty()) return usage_error("--cpu: not with --gpu");
  if (texts.no_send) options.jobs_socket.clear();
  return options;
}

std::variant<Options, Exit> parse_options(int argc, const char* const* argv) {
  CLI::App app("Measures the GPUs that nobody uses, and reports the results to gpumeter.",
               "gpumeter-benchmark");
  Options options;
  options.jobs_socket = "/run/gpumeter/jobs.sock";
  options.lock = "/run/gpumeter/benchmark.lock";
  options.history = default_history();
  Texts texts;
  add_flags(app, options, texts);
  bool version = false;
  app.add_flag("--version", version, "Print the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Exit{0, app.help()};
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what());
  }
  if (version)
    return Exit{0, std::string("gpumeter-benchmark, version ") + build::kVersion +
                       " (revision: " + build::kRevision + ")\n"};
  return checked(std::move(options), texts);
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
      : options_(options),
        lock_(std::move(lock)),
        daemon_(options.address, options.access),
        history_(options.history) {}

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
    const auto parsed = parse_options(argc, argv);
    if (const auto* exit = std::get_if<Exit>(&parsed)) {
      std::fputs(exit->text.c_str(), exit->code == 0 ? stdout : stderr);
      return exit->code;
    }
    return run(std::get<Options>(parsed));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "gpumeter-benchmark: %s\n", problem.what());
    return kExitFailed;
  }
}
