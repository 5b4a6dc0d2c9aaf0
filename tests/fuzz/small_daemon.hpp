#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/http/routes.hpp"
#include "exporter/store/series_list.hpp"
#include "tests/fakes/fake_clock.hpp"

namespace gpumeter::fuzz {

inline constexpr MetricDescriptor kSeconds{"job_seconds", "A histogram.", "seconds", MetricType::histogram};

/// A store with two GPUs, a run and a histogram; their history, judgement and pages.
class SmallDaemon {
 public:
  SmallDaemon() {
    for (unsigned gpu = 0; gpu < 2; ++gpu) {
      const Labels labels(DeviceInfo{.uuid = "GPU-" + std::to_string(gpu), .model = "a \"\\\n\x7f"}, gpu, "",
                          {});
      series_.add(catalog::up, labels, 1);
      series_.add(catalog::utilization, labels, gpu == 0 ? 0.5 : std::nan(""));
    }
    series_.add(kSeconds, Labels{{"run", "a b"}, {"le", "+Inf"}}, 3, SeriesPart::bucket);
    series_.add(kSeconds, Labels{{"run", "a b"}}, 3, SeriesPart::count);
    series_.commit({});
    history_.sample();
    machine_.history = &history_;
    machine_.live = &live_;
    routes_.set_ready();
  }

  Routes& routes() noexcept { return routes_; }

 private:
  FakeClock clock_;
  Store store_;
  SeriesList series_{store_.attach("amd")};
  History history_{store_, clock_};
  Machine machine_;
  LiveAnswers live_{history_, clock_, machine_.health};
  PageCache pages_{store_};
  Routes routes_{pages_,
                 store_,
                 {.devices = [] { return std::vector<DeviceStatus>{{.uuid = "GPU-0", .state = "ok"}}; },
                  .collectors =
                      [] {
                        return std::vector<CollectorState>{{"amd", true}, {"nvidia", false}};
                      },
                  .machine = &machine_}};
};

}  // namespace gpumeter::fuzz
