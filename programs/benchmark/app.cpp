#include "programs/benchmark/app.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>

#include "base/clock.hpp"
#include "programs/benchmark/guard/lock.hpp"
#include "programs/benchmark/guard/supervise.hpp"
#include "programs/benchmark/guard/users.hpp"
#include "programs/benchmark/report/history.hpp"
#include "programs/benchmark/target/daemon.hpp"
#include "programs/benchmark/work.hpp"

namespace gpumeter::benchmark {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// The service's TimeoutStartSec= is 90 s.
constexpr std::chrono::seconds kLongestStart{80};

volatile std::sig_atomic_t asked_to_stop = 0;

void complain(const std::string& text) { std::fprintf(stderr, "gpumeter-benchmark: %s\n", text.c_str()); }

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

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
    const std::vector<Watch> watches = watches_of(gpu);
    if (const auto reason = why_not_now(gpu, watches)) return report.reason = *reason, report;
    const auto begin = SteadyClock::now();
    const Supervised done = supervise([&] { return work_on(job_of(gpu)); }, kLongest,
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

  std::vector<Watch> watches_of(const Gpu& gpu) const {
    std::vector<Watch> watches;
    if (!options_.needs_daemon()) return watches;
    if (gpu.vendor == "nvidia") watches.push_back(nvml_watch("libnvidia-ml.so.1", gpu.uuid));
    if (gpu.vendor == "amd") watches.push_back(kfd_watch("/sys", gpu.pci_address));
    watches.push_back(daemon_watch(daemon_, gpu.uuid, text_of("/proc/self/cgroup")));
    std::erase_if(watches, [](const Watch& watch) { return !watch; });
    return watches;
  }

  std::optional<std::string> reason_to_give_way(const std::vector<Watch>& watches, int own) {
    if (asked_to_stop != 0) return "a signal asked it to stop";
    if (lock_.is_wanted()) return "another process opened " + options_.lock;
    for (const Watch& watch : watches) {
      if (auto reason = watch(own)) return reason;
    }
    return std::nullopt;
  }

  Job job_of(const Gpu& gpu) const {
    Job job;
    job.is_cpu = options_.cpu;
    job.opencl = options_.opencl;
    job.blas = options_.blas;
    job.time = options_.time;
    job.library_paths = options_.library_paths;
    job.address = pci::parse_address(gpu.pci_address);
    for (const Gpu& peer : all_) {
      const auto address = pci::parse_address(peer.pci_address);
      if (address && peer.uuid != gpu.uuid && !why_not(peer)) job.idle_peers.push_back(*address);
    }
    return job;
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
  const Daemon daemon_;
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

}  // namespace

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

}  // namespace gpumeter::benchmark
