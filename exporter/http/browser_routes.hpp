#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/api/device_status.hpp"
#include "exporter/history/history.hpp"
#include "exporter/http/message.hpp"
#include "exporter/web/assets.hpp"
#include "exporter/web/live_answers.hpp"
#include "exporter/web/runbooks_page.hpp"

namespace gpumeter {

/// Answers the requests of browsers: the page, its files, and the data that it polls. Any thread.
class BrowserRoutes {
 public:
  struct Sources {
    std::string telemetry_path;
    BuildFacts build;
    std::function<std::vector<DeviceStatus>()> devices;
    std::function<std::vector<UnreadDevice>()> unread;  ///< empty: none is unread
    const History* history;                             ///< null: the paths of its data do not exist
    LiveAnswers* live;                                  ///< as above
  };

  explicit BrowserRoutes(Sources sources) : sources_(std::move(sources)) {}

  /// nullopt if the path is none of the page's.
  std::optional<HttpResponse> answer(const HttpRequest& request) const;
  /// True if the answer is made for this request alone and may be long.
  static bool is_costly(std::string_view path) noexcept { return path == kHistory; }
  /// True if the answer is not there yet, may take long with many GPUs, and is not refused while others are
  /// under way.
  bool is_slow(const HttpRequest& request) const;

 private:
  static constexpr std::string_view kHistory = "/api/v1/history";

  HttpResponse page(const HttpRequest& request) const;
  HttpResponse history(const HttpRequest& request) const;
  HttpResponse live(const HttpRequest& request) const;

  const Sources sources_;
  const Asset style_{assets::unpacked(assets::kStyle)};
  const Asset script_{assets::unpacked(assets::kScript)};
  const Asset runbooks_{runbooks_page(assets::unpacked(assets::kRunbooks))};
};

}  // namespace gpumeter
