#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectors/api/device_status.hpp"
#include "collectors/api/workload_cost.hpp"
#include "exporter/health/report.hpp"
#include "exporter/http/browser_routes.hpp"
#include "exporter/http/message.hpp"
#include "exporter/http/negotiation/negotiations.hpp"
#include "exporter/text/page.hpp"

namespace gpumeter {

/// The sources of the answers. HTTP threads call the functions, several at a time. The functions return at
/// once: they read the daemon's memory, never a driver.
struct RouteContext {
  std::string telemetry_path = "/metrics";
  std::string host = {};       ///< the machine's name, a label of the page under dcgm-exporter's names
  unsigned max_requests = 40;  ///< pages under way at the same time; 0: no limit. As node_exporter's flag.
  BuildFacts build = {};
  std::function<std::vector<DeviceStatus>()> devices = {};
  std::function<std::vector<UnreadDevice>()> unread = {};  ///< empty: none is unread
  std::function<std::vector<CollectorState>()> collectors = {};
  std::function<std::shared_ptr<const health::Report>()> health = {};  ///< empty: no such route
  std::function<std::vector<WorkloadCost>()> workloads = {};           ///< empty: no such route
  const History* history = nullptr;                                    ///< null: there is no /api/v1/history
  LiveAnswers* live = nullptr;                                         ///< null: there is no /api/v1/live
  std::function<void()> served = {};  ///< a page of metrics was rendered; must not block. Empty: nothing
};

/// Maps one request to one response; independent of sockets. Any thread.
class Routes {
 public:
  Routes(PageCache& pages, const Store& store, RouteContext context)
      : pages_(pages), store_(store), context_(std::move(context)), browsers_(sources_of(context_)) {}

  HttpResponse answer(const HttpRequest& request);
  /// An answer that is not there yet may take long with many GPUs and jobs.
  Rendering rendering_of(const HttpRequest& request);
  unsigned max_requests() const noexcept { return context_.max_requests; }

  /// Called once the first pass is over: /-/ready then returns 200 instead of 503.
  void set_ready() noexcept { ready_ = true; }

 private:
  HttpResponse metrics(const HttpRequest& request);
  HttpResponse series(const HttpRequest& request) const;
  HttpResponse health(const HttpRequest& request) const;
  HttpResponse workloads(const HttpRequest& request) const;
  HttpResponse devices() const;
  HttpResponse ready() const;
  bool is_busy(const HttpRequest& request) const noexcept;
  HttpResponse busy() const;
  static BrowserRoutes::Sources sources_of(const RouteContext& context) {
    return {context.telemetry_path, context.build,   context.devices,
            context.unread,         context.history, context.live};
  }

  PageCache& pages_;
  const Store& store_;
  const RouteContext context_;
  const BrowserRoutes browsers_;
  Negotiations negotiations_;
  std::atomic<bool> ready_{false};
};

}  // namespace gpumeter
