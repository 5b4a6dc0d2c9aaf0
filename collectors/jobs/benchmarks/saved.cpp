#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/records.hpp"
#include "collectors/jobs/benchmarks/results.hpp"
#include "collectors/jobs/wire/label_text.hpp"

namespace gpumeter::jobs::benchmarks {
namespace {

using Role = ResultKind::Role;

double finite(RecordReader& in) {
  const double value = in.number();
  if (!is_acceptable(value)) in.fail();
  return value;
}

/// A value of a label, as read() accepts it.
std::string label_value(RecordReader& in, const ResultLabel& label) {
  std::string value = in.text();
  const bool is_member = label.values.empty() || std::ranges::find(label.values, value) != label.values.end();
  if (value.empty() || !is_member || label_text(value) != value) in.fail();
  return value;
}

Result result_of(RecordReader& in) {
  Result result;
  result.kind = find_result_kind(in.text());
  if (result.kind == nullptr || result.kind->role == Role::failed || result.kind->role == Role::timestamp) {
    in.fail();
    return result;
  }
  for (const ResultLabel& label : result.kind->labels) {
    result.labels.push_back({std::string(label.name), label_value(in, label)});
  }
  result.value = finite(in);
  if (result.kind->role == Role::rate && result.value < 0) in.fail();
  return result;
}

SuiteRun run_of(RecordReader& in) {
  SuiteRun run;
  run.timestamp = finite(in);
  const std::int64_t verdict = in.integer(-1, 1);
  if (verdict >= 0) run.failed = verdict == 1;
  return run;
}

}  // namespace

std::string Results::saved() const {
  RecordWriter out;
  for (const auto& [uuid, suites] : devices_) {
    out.begin("device").text(uuid);
    for (const auto& [suite, run] : suites) {
      out.begin("suite").text(suite).number(run.timestamp);
      out.integer(run.failed ? static_cast<int>(*run.failed) : -1);
      for (const Result& result : run.results) {
        out.begin("result").text(result.kind->name);
        for (const Label& label : result.labels) out.text(label.value);
        out.number(result.value);
      }
    }
  }
  return out.take();
}

gpumeter::Result<Done> Results::restore(std::string_view section) {
  ByDevice devices;
  Suites* suites = nullptr;
  SuiteRun* run = nullptr;
  std::size_t results = 0;  // of the device
  RecordReader in(section);
  while (in.next()) {
    if (in.kind() == "device" && devices.size() < kMostDevices) {
      suites = &devices[in.text()];
      run = nullptr;
      results = 0;
    } else if (in.kind() == "suite" && suites != nullptr && suites->size() < kMostSuites) {
      const std::string suite = in.text();
      run = &suites->insert_or_assign(suite, run_of(in)).first->second;
    } else if (in.kind() == "result" && run != nullptr && results++ < kMostResults) {
      run->results.push_back(result_of(in));
    } else {
      in.fail();
    }
  }
  if (in.failed()) return Error("the results of benchmarks, line " + std::to_string(in.line()));
  devices_ = std::move(devices);
  ++version_;
  return Done{};
}

}  // namespace gpumeter::jobs::benchmarks
