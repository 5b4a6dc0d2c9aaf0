#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/api/device_status.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/api/workload_cost.hpp"
#include "exporter/health/report.hpp"
#include "exporter/history/history.hpp"
#include "exporter/http/message.hpp"
#include "exporter/http/negotiation.hpp"
#include "exporter/http/settings.hpp"
#include "exporter/text/page.hpp"
#include "exporter/web/live_answers.hpp"
#include "exporter/web/pages.hpp"

namespace gpumeter {

/// The sources of the answers. HTTP threads call the functions, several at a time. The functions return at
/// once: they read the daemon's memory, never a driver.
struct RouteContext {
  HttpSettings web = {};
  std::string host = {};  ///< the machine's name, a label of the page under dcgm-exporter's names
  BuildFacts build = {};
  std::function<std::vector<DeviceStatus>()> devices = {};
  std::function<std::vector<UnreadDevice>()> unread = {};  ///< empty: none is unread
  std::function<std::vector<CollectorState>()> collectors = {};
  const Machine* machine =
      nullptr;  ///< health, history, live values, events; null, or null in it: no such route
  std::function<std::vector<WorkloadCost>()> workloads = {};  ///< empty: no such route
  /// The JSON of routes that only private listeners have, by path: they name other users' processes.
  std::map<std::string, std::function<std::string()>, std::less<>> private_json = {};
  std::function<void()> served = {};  ///< a page of metrics was rendered; must not block. Empty: nothing
};

/// Maps one request to one response; independent of sockets. The answers are for scrapers, programs and
/// browsers: the live page, its files, and the data that it polls. Any thread.
class Routes {
 public:
  Routes(PageCache& pages, const Store& store, RouteContext context)
      : pages_(pages), store_(store), context_(std::move(context)) {}

  HttpResponse answer(const HttpRequest& request);
  /// An answer that is not there yet may take long with many GPUs and jobs.
  Rendering rendering_of(const HttpRequest& request);
  /// Too many answers are under way for one more of this kind; busy() is the answer then.
  bool refuses(const HttpRequest& request) const noexcept;
  HttpResponse busy() const;
  unsigned max_requests() const noexcept { return context_.web.max_requests; }

  /// Called once the first pass is over: /-/ready then returns 200 instead of 503.
  void set_ready() noexcept { ready_ = true; }

 private:
  /// True if the machine has a history, or live values.
  template <class Source>
  bool has(Source* Machine::*source) const noexcept {
    return context_.machine != nullptr && context_.machine->*source != nullptr;
  }
  /// Null if there is no such private route for the request.
  const std::function<std::string()>* private_route(const HttpRequest& request) const;
  HttpResponse metrics(const HttpRequest& request);
  std::vector<UnreadDevice> unread() const {
    return context_.unread ? context_.unread() : std::vector<UnreadDevice>();
  }

  /// The answer of a route; nullopt: there is no such one here.
  using Answer = std::optional<HttpResponse>;
  struct Route;
  static const Route* route_of(std::string_view path) noexcept;

  PageCache& pages_;
  const Store& store_;
  const RouteContext context_;
  const Asset style_{assets::unpacked(assets::kStyle)};
  const Asset script_{assets::unpacked(assets::kScript)};
  const Asset runbooks_{assets::unpacked(assets::kRunbooks)};
  Negotiations negotiations_;
  const SystemClock clock_;
  std::atomic<bool> ready_{false};
};

}  // namespace gpumeter
