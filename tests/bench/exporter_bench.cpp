#include <benchmark/benchmark.h>

#include "exporter/store/registry.hpp"
#include "exporter/text/gzip.hpp"
#include "tests/bench/sample_series.hpp"

namespace gpumeter::bench {
namespace {

void render(benchmark::State& state, Format format) {
  const SampleSeries series(static_cast<std::size_t>(state.range(0)));
  Registry registry;
  series.attach_to(registry);
  std::size_t bytes = 0;
  for (auto _ : state) {
    const Rendered page = registry.render(format);
    bytes = page.text.size();
    benchmark::DoNotOptimize(page.text.data());
  }
  state.counters["page_bytes"] = static_cast<double>(bytes);
}

void commit(benchmark::State& state) {
  const SampleSeries series(static_cast<std::size_t>(state.range(0)));
  Registry registry;
  const std::vector<SourceId> sources = series.attach_to(registry);
  const Frame frame = series.frame();
  for (auto _ : state) registry.commit(sources[0], frame);
}

void compress(benchmark::State& state) {
  const SampleSeries series(static_cast<std::size_t>(state.range(0)));
  Registry registry;
  series.attach_to(registry);
  const std::string page = registry.render(Format::text).text;
  for (auto _ : state) benchmark::DoNotOptimize(gzip(page));
}

BENCHMARK_CAPTURE(render, text, Format::text)->Arg(800)->Arg(35'000)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(render, openmetrics, Format::openmetrics)
    ->Arg(800)
    ->Arg(35'000)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(compress)->Arg(800)->Arg(35'000)->Unit(benchmark::kMicrosecond);
BENCHMARK(commit)->Arg(800)->Arg(35'000)->Name("commit_of_one_device_in_8")->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace gpumeter::bench
