#include "daemon/web/web_config.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "exporter/tls/context.hpp"

namespace gpumeter {
namespace {

constexpr auto kLook = std::chrono::seconds(1);
/// As the alert GpumeterCertificateEnds (certificateEnds of the mixin).
constexpr auto kEndsSoon = std::chrono::hours(14 * 24);

CertificateEnd end_of(const TlsContext* tls, Nanoseconds now) {
  if (tls == nullptr) return CertificateEnd::far;
  const auto left =
      std::chrono::seconds(tls->not_after()) - std::chrono::duration_cast<std::chrono::seconds>(now);
  if (left <= std::chrono::seconds(0)) return CertificateEnd::past;
  return left < kEndsSoon ? CertificateEnd::soon : CertificateEnd::far;
}

/// "2026-10-01T15:23:16Z"; empty for a year that the C library cannot express.
std::string utc(std::time_t seconds) {
  std::tm parts{};
  char text[32];
  if (gmtime_r(&seconds, &parts) == nullptr) return {};
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

/// Reasons why a generation that is correct by itself cannot replace the one in force.
std::vector<std::string> obstacles(const WebGeneration& old, const WebGeneration& wanted) {
  if (old.settings.tls.has_value() == wanted.settings.tls.has_value()) return {};
  return {wanted.settings.tls ? "tls_server_config: turning TLS on needs a restart"
                              : "tls_server_config: turning TLS off needs a restart"};
}

}  // namespace

WebAttempt load_generation(const std::string& file, const std::shared_ptr<const WebGeneration>& old) {
  WebAttempt attempt{config::web::load_file(file), nullptr};
  auto& [settings, problems, notes, files, places] = attempt.file;
  if (problems.empty() && old != nullptr && old->settings == settings) {
    attempt.generation = old;
    return attempt;
  }
  std::shared_ptr<const TlsContext> context;
  if (settings.tls) {
    Result<std::shared_ptr<const TlsContext>> tls = TlsContext::make(*settings.tls);
    if (tls) {
      context = *std::move(tls);
      notes.insert(notes.end(), context->warnings().begin(), context->warnings().end());
    } else {
      problems.push_back(places.problem("tls_server_config", 0, tls.error().message()));
    }
  }
  if (!problems.empty()) return attempt;
  attempt.generation =
      std::make_shared<const WebGeneration>(WebGeneration{std::move(settings), std::move(context)});
  return attempt;
}

Result<std::unique_ptr<WebConfig>> WebConfig::open(const std::string& file, const Clock& clock, Log& log) {
  const WebAttempt first = load_generation(file);
  if (first.generation == nullptr) return Error(to_string(first.file.problems.front()));
  return std::unique_ptr<WebConfig>(new WebConfig(file, clock, log, first));
}

// Without a stamp the first look reads all files again, in case that they changed in the meantime.
WebConfig::WebConfig(std::string file, const Clock& clock, Log& log, const WebAttempt& first)
    : file_(std::move(file)),
      clock_(clock),
      log_(log),
      access_(clock, first.generation),
      files_(first.file.files),
      last_reload_{true, clock.realtime()},
      worker_(clock) {
  log_start(first);
}

// The words are exporter-toolkit's.
void WebConfig::log_start(const WebAttempt& first) {
  for (const std::string& note : first.file.notes) log_.warn(note, {{"file", file_}});
  const WebSettings& settings = first.generation->settings;
  if (settings.tls) {
    log_.info("TLS is enabled.", {{"http2", "false"}});
  } else {
    log_.info("TLS is disabled.", {{"http2", "false"}});
  }
  if (settings.rate_limit.interval > Nanoseconds(0)) log_.info("Rate Limiter is enabled.");
}

Result<Done> WebConfig::start() {
  if (Result<Done> started = access_.start(); !started) return started;
  return worker_.start("web-config", [this] {
    look();
    return kLook;
  });
}

bool WebConfig::stop(Nanoseconds deadline) {
  access_.close();
  worker_.request_stop();
  const bool users_ended = access_.stop(deadline);
  return worker_.join(deadline) && users_ended;
}

// Follows symbolic links.
WebConfig::FileStamp WebConfig::stamp_of(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return {};
  return {static_cast<std::int64_t>(status.st_dev),
          static_cast<std::int64_t>(status.st_ino),
          status.st_size,
          status.st_mtim.tv_sec,
          status.st_mtim.tv_nsec,
          status.st_ctim.tv_sec,
          status.st_ctim.tv_nsec};
}

// The stamps are older than the content, so a change during the reading is found by the next look.
void WebConfig::look() {
  report_certificate();
  std::vector<FileStamp> stamps;
  for (const std::string& file : files_) stamps.push_back(stamp_of(file));
  if (stamps == stamps_) return;
  const WebAttempt attempt = load_generation(file_, access_.current());
  apply(attempt);
  if (attempt.file.files != files_) stamps.clear();
  files_ = attempt.file.files;
  stamps_ = std::move(stamps);
}

void WebConfig::report_certificate() {
  const auto tls = access_.current()->tls;
  const CertificateEnd end = end_of(tls.get(), clock_.realtime());
  if (std::exchange(certificate_end_, end) == end) return;
  const std::string at = tls == nullptr ? "" : utc(tls->not_after());
  switch (end) {
    case CertificateEnd::past:
      return log_.error("the TLS certificate has ended; clients that verify it cannot connect",
                        {{"end", at}});
    case CertificateEnd::soon:
      return log_.warn("the TLS certificate ends soon; clients that verify it cannot connect then",
                       {{"end", at}});
    case CertificateEnd::far:
      return log_.info("the TLS certificate no longer ends soon", {{"end", at}});
  }
}

std::vector<std::string> WebConfig::reload() { return apply(load_generation(file_, access_.current())); }

std::vector<std::string> WebConfig::apply(const WebAttempt& attempt) {
  std::vector<std::string> problems;
  for (const options::Problem& problem : attempt.file.problems) problems.push_back(to_string(problem));
  const std::shared_ptr<const WebGeneration> old = access_.current();
  if (problems.empty()) problems = obstacles(*old, *attempt.generation);
  const bool is_new = problems.empty() && attempt.generation != old;
  if (is_new) access_.replace(attempt.generation);
  const std::vector<std::string> known = record(problems);
  if (known != problems) {
    for (const std::string& problem : problems) {
      log_.error("web configuration not reloaded; the old one stays in force", {{"error", problem}});
    }
  }
  if (is_new || (!known.empty() && problems.empty()))
    log_.info("web configuration reloaded", {{"file", file_}});
  if (is_new && old->settings.rate_limit != attempt.generation->settings.rate_limit) {
    log_.warn("a change of rate_limit needs a restart", {{"file", file_}});
  }
  return problems;
}

std::vector<std::string> WebConfig::record(const std::vector<std::string>& problems) {
  const MutexLock lock(mutex_);
  last_reload_.is_successful = problems.empty();
  if (problems.empty()) last_reload_.loaded_at = clock_.realtime();
  return std::exchange(problems_, problems);
}

WebReload WebConfig::last_reload() const {
  const MutexLock lock(mutex_);
  return last_reload_;
}

}  // namespace gpumeter
