#pragma once

#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "collectors/attribution/names/user_names.hpp"
#include "collectors/jobs/intake/ingest.hpp"
#include "collectors/jobs/intake/notice.hpp"
#include "collectors/jobs/join/jobs_page.hpp"
#include "config/config.hpp"
#include "exporter/store/store.hpp"
#include "systemd/listen_fds.hpp"

namespace gpumeter::jobs {

/// All of it together, as the daemon has it: sockets, the thread that reads them, the one that publishes.
/// One thread. What cannot be had is said and gone without; none of it keeps the daemon from its devices.
class JobService {
 public:
  /// All must outlive this object. `append`: see JobsPage.
  struct Parts {
    const Clock& clock;
    Store& store;
    UserNames& names;
    Say say;
    JobsPage::Append append = {};
  };

  explicit JobService(Parts parts) : parts_(std::move(parts)) {}

  /// Does nothing where jobs are switched off, but for closing what was passed.
  void start(const config::Config& config, const std::vector<systemd::PassedSocket>& passed);
  /// Starts the threads that the kernel refused so far (pids.max). Cheap where all run.
  void retry();
  /// Takes on what a reload may change.
  void configure(const config::Config& config);
  /// False: a thread hangs and was left behind.
  bool stop();

 private:
  const Parts parts_;
  std::unique_ptr<Ingest> ingest_;
  std::unique_ptr<JobsPage> page_;
  bool is_running_ = false;
  bool said_ = false;  ///< that a thread is missing
};

}  // namespace gpumeter::jobs
