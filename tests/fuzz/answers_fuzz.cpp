// What a daemon answers to `gpumeter top`, `gpumeter check` and gpumeter-benchmark, which may run on another
// machine: no text of it reaches the terminal with a control character.
#include <algorithm>
#include <string>

#include "exporter/json/api.hpp"
#include "programs/benchmark/guard.hpp"
#include "programs/benchmark/report.hpp"
#include "programs/top/snapshot.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter {
namespace {

void expect_no_control(const std::string& text) {
  fuzz::expect(std::ranges::none_of(text, [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; }));
}

void expect_printable(const std::string& text) {
  fuzz::expect(top::printable(text, top::Charset::utf8) == text);
  expect_no_control(text);
}

void check(const top::Sample& sample) {
  expect_printable(sample.name);
  for (const auto& [name, value] : sample.labels) {
    expect_printable(name);
    expect_printable(value);
  }
}

void check(const top::Finding& finding) {
  for (const std::string& text :
       {finding.reason, finding.severity, finding.action, finding.text, finding.alert}) {
    expect_printable(text);
  }
}

void check(const top::Health& health) {
  for (const top::Finding& finding : health.machine) check(finding);
  for (const top::Gpu& gpu : health.gpus) {
    for (const std::string& text : {gpu.index, gpu.uuid, gpu.model, gpu.pci_address}) expect_printable(text);
    for (const top::Finding& finding : gpu.findings) check(finding);
  }
}

void check(const std::vector<benchmark::Gpu>& gpus) {
  for (const benchmark::Gpu& gpu : gpus) {
    expect_no_control(gpu.model);
    expect_no_control(benchmark::why_not(gpu).value_or(""));
    benchmark::Report report;
    report.gpu = gpu;
    const std::string lines = benchmark::datagram(report);
    fuzz::expect(lines.empty() || std::ranges::count(lines, '\n') == 2);
  }
}

}  // namespace
}  // namespace gpumeter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string text(fuzz::text_of(data, size));
  const Result<std::vector<top::Sample>> series = top::parse_series(text, top::Charset::utf8);
  const Result<top::Health> health = top::parse_health(text, top::Charset::utf8);
  if (series) {
    for (const top::Sample& sample : *series) check(sample);
    top::make_snapshot(*series, health ? std::optional(*health) : std::nullopt);
  }
  if (health) check(*health);
  const Result<health::Report> report = parse_health_json(text, Nanoseconds{1'000'000'000});
  fuzz::expect(report || !report.error().message().empty());
  const Result<std::vector<benchmark::Gpu>> gpus = benchmark::parse_gpus(text, R"({"series":[]})");
  if (gpus) check(*gpus);
  fuzz::expect(!benchmark::parse_gpus(R"({"gpus":3})", text));
  return 0;
}
