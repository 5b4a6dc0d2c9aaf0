#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "programs/top/fetch/http_client.hpp"
#include "programs/top/model/progress.hpp"
#include "programs/top/model/snapshot.hpp"

namespace gpumeter::top {

/// Asks a daemon for a Snapshot: one request for all series and one for health. A daemon without health (404)
/// is asked for health again after a minute. One thread at a time; blocks as HttpClient::get() does.
class Query {
 public:
  /// `clock` must outlive the query.
  Query(HttpClient client, Charset charset, const Clock& clock);

  const Address& address() const noexcept { return client_.address(); }
  /// The Error is printable.
  Result<Snapshot> run();

 private:
  Result<std::string> get(const std::string& path, bool* is_missing = nullptr);
  Result<std::optional<Health>> health();
  Result<Snapshot> snapshot();

  HttpClient client_;
  const Charset charset_;
  const Clock& clock_;
  const std::string series_path_;
  std::optional<Nanoseconds> no_health_since_;
  Progress progress_;
};

}  // namespace gpumeter::top
