#include <benchmark/benchmark.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "tests/bench/sample_series.hpp"

namespace gpumeter::bench {
namespace {

/// The same series and labels in prometheus-cpp: the work of its exposer for each scrape before compression.
void prometheus_cpp(benchmark::State& state) {
  const SampleSeries series(static_cast<std::size_t>(state.range(0)));
  prometheus::Registry registry;
  for (std::size_t device = 0; device < kDevices; ++device) {
    const DeviceInfo info = SampleSeries::device(device);
    for (std::size_t slot = 0; slot < series.of_device.size(); ++slot) {
      const SeriesSpec& spec = series.of_device[slot];
      auto& family = prometheus::BuildGauge()
                         .Name(std::string(spec.family->name))
                         .Help(std::string(spec.family->help))
                         .Register(registry);
      family
          .Add({{"gpu", std::to_string(device)},
                {"uuid", info.uuid},
                {"vendor", info.vendor},
                {"model", info.model},
                {"sensor", spec.labels[0].value}})
          .Set(series.values[slot]);
    }
  }
  const prometheus::TextSerializer serializer;
  std::size_t bytes = 0;
  for (auto _ : state) {
    const std::string page = serializer.Serialize(registry.Collect());
    bytes = page.size();
    benchmark::DoNotOptimize(page.data());
  }
  state.counters["page_bytes"] = static_cast<double>(bytes);
}

BENCHMARK(prometheus_cpp)
    ->Name("prometheus_cpp_collect_and_serialize")
    ->Arg(800)
    ->Arg(35'000)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace gpumeter::bench
