#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "collectors/jobs/intake/connections.hpp"
#include "collectors/jobs/intake/datagrams.hpp"
#include "collectors/jobs/intake/gate.hpp"
#include "collectors/jobs/intake/mllog_reader.hpp"
#include "collectors/jobs/intake/notice.hpp"
#include "collectors/jobs/intake/sockets.hpp"
#include "collectors/jobs/model/run_model.hpp"
#include "config/config.hpp"

namespace gpumeter::jobs {

/// What a reload may change.
struct IngestSettings {
  Limits limits;
  std::vector<std::string> users;
};
IngestSettings ingest_settings(const config::Config& config);

/// Takes in what jobs say, on a thread of its own, "jobs". It shares no lock with a scrape, and nothing with
/// anybody but the snapshot that it makes each second. Logs are read by threads of their own, since a file
/// may hang. Public methods: any thread, but for start() and stop(), which are the owner's.
class Ingest {
 public:
  Ingest(const Clock& clock, const config::Config& config, UserNames& names, Say say);
  ~Ingest() { stop(); }
  Ingest(const Ingest&) = delete;
  Ingest& operator=(const Ingest&) = delete;

  /// Once, before start(). An Error: nothing can be taken in.
  Result<Done> prepare(JobSockets sockets);
  /// Starts the thread if it does not run yet. An Error: the kernel gives none now.
  Result<Done> start();
  /// False: a log hangs in a read; its thread was left behind.
  bool stop();
  void configure(IngestSettings settings);

  /// Never nullptr.
  std::shared_ptr<const JobSnapshot> snapshot() const { return model_.snapshot(); }

 private:
  void run() noexcept;
  void turn();
  void hear_all(int patience);
  void hear(int number);
  void read_datagrams();
  void take(const Datagram& datagram);
  void accept_all();
  void read_connection(int number);
  void take_log(MllogReader& log);
  void say_trouble(const MllogReader& log, std::string& said, std::string trouble);
  void tick();
  void take_settings();
  bool is_alive(const SenderId& id) const;
  bool watch(int number);
  Moment now() const noexcept { return {clock_.boottime(), clock_.realtime()}; }

  const Clock& clock_;
  const Say say_;
  std::thread thread_;
  Descriptor events_;
  Descriptor wake_;
  JobSockets sockets_;

  // The thread's.
  Gate gate_;
  RunModel model_;  ///< but for snapshot()
  Datagrams datagrams_;
  Connections connections_;
  std::vector<std::unique_ptr<MllogReader>> logs_;
  std::vector<std::string> troubles_;  ///< of each log, as last said
  Nanoseconds tick_at_{};
  bool deaf_ = false;  ///< to new connections, until the next tick: there is no descriptor for one

  Mutex mutex_;
  std::optional<IngestSettings> settings_ GPUMETER_GUARDED_BY(mutex_);
  bool stop_ GPUMETER_GUARDED_BY(mutex_) = false;
};

}  // namespace gpumeter::jobs
