#pragma once

#include <sys/eventfd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/worker.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/jobs/benchmarks/results.hpp"
#include "collectors/jobs/intake/gate.hpp"
#include "collectors/jobs/intake/mllog_file.hpp"
#include "collectors/jobs/intake/receiver.hpp"
#include "collectors/jobs/intake/sockets.hpp"
#include "collectors/jobs/join/run_join.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "collectors/jobs/model/run_model.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::jobs {

/// Receives the messages of jobs and commits their series to the store each second, on its own thread "jobs".
/// A Receiver empties the datagram socket meanwhile. Each log and the file of subordinate uids has a thread
/// of its own, because reading a file or looking up a name may hang. Failures are logged; none of them stops
/// the daemon. configure(): any thread; everything else: the owner's.
class Ingest {
 public:
  using Sections = std::map<std::string, std::string>;  ///< of the state file, by name
  /// Those of RunModel, RunJoin and benchmarks::Results.
  static constexpr const char* kSections[] = {"runs", "runs_on_devices", "benchmarks"};

  /// All must outlive this object.
  struct Parts {
    const Clock& clock;
    Store& store;
    UserNames& names;
    Say say;
    /// Has the known GPUs, for the results of benchmarks, and who uses each, for the join with runs. Takes
    /// the runs as of each tick.
    Machine& machine;
    Topic<Sections>* keep = nullptr;  ///< takes kSections each second; null: runs do not survive a restart
    std::string procfs = "/proc";
    std::string subuids = "/etc/subuid";  ///< see UserOwners
    DeviceLabels device_labels = {};      ///< of the results of benchmarks
  };

  Ingest(Parts parts, Settings settings, const Limits& limits = {});
  ~Ingest() { stop(); }
  Ingest(const Ingest&) = delete;
  Ingest& operator=(const Ingest&) = delete;

  /// Continues the runs of an earlier process. Call it before start().
  Result<Done> resume(const Sections& saved, bool is_of_this_boot);
  /// Opens the sockets and starts the thread. Call once.
  void start(std::vector<PassedSocket> passed);
  /// Starts the thread if the kernel has refused it so far (pids.max). Cheap otherwise.
  void retry();
  /// Takes what jobs have sent to sockets that the daemon created, and refuses what they send later. The
  /// messages on systemd's socket are left to the next daemon. Returns false if a read of a log or a lookup
  /// of a name hangs; its thread is then left behind.
  bool stop();
  void configure(LiveSettings settings);
  /// For others who must know them; start() runs without sockets for jobs, too. Main thread.
  UserOwners& owners() { return owners_; }
  /// Returns the user that owns a subordinate uid, otherwise the uid. Any thread.
  std::uint32_t owner_of(std::uint32_t uid) const { return owners_.owner_of(uid); }

 private:
  Result<Done> watch_sockets();
  bool watch(int number);
  void turn();
  int hear_all(int patience);
  void hear(int number);
  void take_orders();
  void take_letters();
  void refuse_senders();
  void take_rest();
  void receive_last();
  void take(const Datagram& datagram, const Moment& at);
  bool may_send_results(std::uint32_t uid);
  void take_results(const Datagram& datagram, const Moment& at);
  void accept_all();
  void read_connection(int number);
  void take_log(MllogReader& log, std::string& said);
  void tick();
  void keep_runs();
  bool is_alive(const SenderId& id) const;
  Moment now() const noexcept { return {parts_.clock.boottime(), parts_.clock.realtime()}; }

  const Parts parts_;
  const Settings settings_;
  Worker worker_{parts_.clock};
  UserOwners owners_{parts_.subuids};
  bool is_running_ = false;
  bool is_closed_ = false;  ///< no message can follow those in the socket of datagrams
  bool is_missed_ = false;  ///< the missing thread was logged
  Descriptor events_;       ///< invalid if nothing can be received
  Descriptor wake_;
  JobSockets sockets_;

  // Used by the thread only.
  ProcessKin kin_{parts_.procfs};
  Gate gate_{parts_.procfs, parts_.names, kin_, owners_};
  Admissions admissions_{gate_};
  Source source_{parts_.store.attach()};
  RunModel model_;
  RunJoin join_{kin_};
  SeriesList joined_{parts_.store.attach()};
  benchmarks::Results results_;
  benchmarks::Series result_series_{parts_.store.attach(), parts_.device_labels};
  Letters letters_;
  Connections connections_{gate_};
  std::vector<std::unique_ptr<MllogReader>> logs_;
  std::vector<std::string> troubles_;  ///< last logged trouble of each log
  Nanoseconds tick_at_{};
  Nanoseconds kept_at_{};
  bool is_full_ = false;  ///< no descriptor is left for a connection: accepts none until the next tick

  Mutex mutex_;
  std::optional<LiveSettings> next_ GPUMETER_GUARDED_BY(mutex_);

  Receiver receiver_;
};

}  // namespace gpumeter::jobs
