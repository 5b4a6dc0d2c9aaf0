#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"
#include "config/web.hpp"
#include "exporter/access/access.hpp"

namespace gpumeter {

/// The result of the last attempt to load the web configuration.
struct WebReload {
  bool is_successful = true;
  Nanoseconds loaded_at{};  ///< CLOCK_REALTIME of the last successful attempt
};

/// One attempt to load the web configuration.
struct WebAttempt {
  config::web::Loaded file;                         ///< with TLS's problems and notes; its settings moved on
  std::shared_ptr<const WebGeneration> generation;  ///< null if there are problems
};

/// Reads the file and those that it names, and makes what TLS needs. `old`, unless null, is reused if the
/// settings are the same. Blocks for the file system.
WebAttempt load_generation(const std::string& file,
                           const std::shared_ptr<const WebGeneration>& old = nullptr);

/// When the server's TLS certificate ends, as far as the log distinguishes. Far: also without TLS.
enum class CertificateEnd : std::uint8_t { far, soon, past };

/// The web configuration file of a running daemon. A thread ("web-config") looks at the file and the files
/// that it names once a second, and puts changes in force. If the new state is wrong, the old one stays in
/// force. It also logs when the certificate is about to end or has ended. The owner's thread, except where
/// noted.
class WebConfig {
 public:
  /// Loads the file. `clock` and `log` must outlive the object.
  static Result<std::unique_ptr<WebConfig>> open(const std::string& file, const Clock& clock, Log& log);

  /// Starts the threads "web-config" and "web-users".
  Result<Done> start();
  /// Returns false if a thread hangs in the file system and was left behind.
  bool stop(Nanoseconds deadline);

  /// Loads the file now; returns the problems, one line each. Blocks for the file system. Any thread.
  std::vector<std::string> reload() GPUMETER_EXCLUDES(mutex_);

  /// Any thread.
  WebReload last_reload() const GPUMETER_EXCLUDES(mutex_);
  WebAccess& access() noexcept { return access_; }
  /// The generation in force. Any thread.
  std::shared_ptr<const WebGeneration> generation() const { return access_.current(); }

 private:
  /// What changes when a file is written or replaced: device, inode, size, and the times of its last changes;
  /// all 0 for a file that is not there.
  using FileStamp = std::array<std::int64_t, 7>;

  WebConfig(std::string file, const Clock& clock, Log& log, const WebAttempt& first);
  static FileStamp stamp_of(const std::string& file);
  void look();
  void report_certificate();
  std::vector<std::string> apply(const WebAttempt& attempt) GPUMETER_EXCLUDES(mutex_);
  /// Keeps the outcome of an attempt, and returns the problems of the one before.
  std::vector<std::string> record(const std::vector<std::string>& problems) GPUMETER_EXCLUDES(mutex_);
  void log_start(const WebAttempt& first);

  const std::string file_;
  const Clock& clock_;
  Log& log_;
  WebAccess access_;
  std::vector<std::string> files_;  // of the thread "web-config"
  std::vector<FileStamp> stamps_;   // of the thread "web-config": before the files were read
  CertificateEnd certificate_end_ = CertificateEnd::far;  // of the thread "web-config": as logged
  mutable Mutex mutex_;
  WebReload last_reload_ GPUMETER_GUARDED_BY(mutex_);
  std::vector<std::string> problems_ GPUMETER_GUARDED_BY(mutex_);  // logged ones, until an attempt succeeds
  Worker worker_;
};

}  // namespace gpumeter
