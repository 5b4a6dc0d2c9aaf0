#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "collectors/api/device_status.hpp"
#include "exporter/http/message.hpp"
#include "exporter/text/page.hpp"

namespace gpumeter {

/// What the answers are made of. The functions are called from HTTP threads, several at a time, and
/// return at once: they read the daemon's memory, never a driver.
struct RouteContext {
  std::string telemetry_path = "/metrics";
  unsigned max_requests = 40;  ///< pages under way at the same time; 0: no limit. As node_exporter's flag.
  BuildFacts build = {};
  std::function<std::vector<DeviceStatus>()> devices = {};
  std::function<std::vector<CollectorState>()> collectors = {};
};

/// One request in, one response out; knows nothing of sockets. Any thread.
class Routes {
 public:
  Routes(PageCache& pages, const Store& store, RouteContext context)
      : pages_(pages), store_(store), context_(std::move(context)) {}

  HttpResponse answer(const HttpRequest& request);

  unsigned max_requests() const noexcept { return context_.max_requests; }

  /// The first pass is over: /-/ready says so from now on, and 503 until then.
  void set_ready() noexcept { ready_ = true; }

 private:
  HttpResponse metrics(const HttpRequest& request);
  HttpResponse series(const HttpRequest& request) const;
  HttpResponse ready() const;
  bool is_busy(const HttpRequest& request) const noexcept;
  HttpResponse busy() const;

  PageCache& pages_;
  const Store& store_;
  const RouteContext context_;
  std::atomic<bool> ready_{false};
};

}  // namespace gpumeter
