#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "exporter/health/conditions.hpp"
#include "exporter/health/judge.hpp"
#include "exporter/text/format.hpp"
#include "exporter/text/view.hpp"
#include "tests/bench/sample_series.hpp"

namespace gpumeter::bench {
namespace {

void render(benchmark::State& state, Format format) {
  const SampleSeries series(static_cast<std::size_t>(state.range(0)));
  Store store;
  const std::vector<Source> sources = series.attach_to(store);
  TextView view(store);
  std::size_t bytes = 0;
  for (auto _ : state) {
    const Rendered page = view.render(format);
    bytes = page.text.size();
    benchmark::DoNotOptimize(page.text.data());
  }
  state.counters["page_bytes"] = static_cast<double>(bytes);
}

void commit(benchmark::State& state) {
  const SampleSeries series(static_cast<std::size_t>(state.range(0)));
  Store store;
  std::vector<Source> sources = series.attach_to(store);
  for (auto _ : state) sources[0].commit({});
}

/// Attaches the given number of devices, with 90 series each, and renders their first page.
void attach(benchmark::State& state) {
  const SampleSeries series(90 * kDevices);
  for (auto _ : state) {
    Store store;
    std::vector<Source> sources;
    for (int i = 0; i < state.range(0); ++i)
      sources.push_back(series.attach_to(store, static_cast<std::size_t>(i)));
    benchmark::DoNotOptimize(TextView(store).render(Format::text).text.data());
  }
}

void compress(benchmark::State& state) {
  const SampleSeries series(static_cast<std::size_t>(state.range(0)));
  Store store;
  const std::vector<Source> sources = series.attach_to(store);
  const std::string page = TextView(store).render(Format::text).text;
  for (auto _ : state) benchmark::DoNotOptimize(gzip(page));
}

/// Adds the series of every condition for one device, with quiet values.
void add_readings(Source& source, unsigned gpu) {
  DeviceInfo info;
  info.uuid = "GPU-" + std::to_string(gpu);
  info.vendor = "nvidia";
  info.model = "Card";
  const Labels labels(info, gpu, "");
  source.set(source.add(catalog::up, labels), 1);
  for (const health::Condition& condition : health::all_conditions()) {
    for (const health::Term& term : condition.terms) {
      if (term.reading.family == nullptr || term.reading.family == &catalog::up) continue;
      source.set(source.add(*term.reading.family, labels.with(term.reading.labels.labels())), 0);
    }
  }
  source.commit({});
}

/// One turn of the thread "health" over the given number of devices.
void judge(benchmark::State& state) {
  Store store;
  std::vector<Source> sources;
  for (unsigned gpu = 0; gpu < state.range(0); ++gpu) add_readings(sources.emplace_back(store.attach()), gpu);
  health::Judge judge;
  Nanoseconds now = std::chrono::hours(1);
  judge.judge(store, now);
  for (auto _ : state) {
    now += std::chrono::seconds(1);
    benchmark::DoNotOptimize(judge.judge(store, now).state);
  }
}

BENCHMARK(judge)->Arg(8)->Arg(1024)->Name("judge_devices")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(render, text, Format::text)->Arg(800)->Arg(35'000)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(render, openmetrics, Format::openmetrics)
    ->Arg(800)
    ->Arg(35'000)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(compress)->Arg(800)->Arg(35'000)->Unit(benchmark::kMicrosecond);
BENCHMARK(commit)->Arg(800)->Arg(35'000)->Name("commit_of_one_device_in_8")->Unit(benchmark::kMicrosecond);
BENCHMARK(attach)
    ->Arg(64)
    ->Arg(256)
    ->Arg(1024)
    ->Name("attach_devices_and_render")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gpumeter::bench
