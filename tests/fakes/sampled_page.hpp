#pragma once

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/api/process_list.hpp"

namespace gpumeter {

/// A single device, attached and sampled as by a lane. Shows its series as the lines of a page, without the
/// device's labels.
class SampledPage {
 public:
  explicit SampledPage(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  void attach(const DeviceInfo& info) {
    if (const Result<Done> attached = device_->attach(info); !attached) {
      throw std::runtime_error(attached.error().message());
    }
    values_.assign(device_->series().size(), 0);
    statuses_.assign(device_->series().size(), ReadStatus::unsupported);
  }

  PassOutcome pass(Tier tier, std::chrono::milliseconds elapsed = std::chrono::milliseconds(0)) {
    now_ += std::chrono::seconds(1);
    SampleSink sink(values_, statuses_);
    const PassOutcome outcome = device_->sample({tier, now_, elapsed}, sink);
    for (std::size_t i = 0; i < kReadStatusCount; ++i) errors_[i] += sink.errors()[i];
    return outcome;
  }

  /// Closes the driver; attach() opens it again.
  void release() { device_->release(); }

  /// Lists the processes as a lane does after the last pass. The device must list processes.
  ReadStatus processes(std::vector<DeviceProcess>& out) {
    return dynamic_cast<ListsProcesses&>(*device_).processes({Tier::normal, now_, {}}, out);
  }

  Nanoseconds now() const { return now_; }

  /// Returns true if the lane would attach again after this fast pass, because there are more or other
  /// series.
  bool has_more(Nanoseconds now) { return device_->has_more(now); }

  void pass_all() {
    for (const Tier tier : kTiers) pass(tier);
  }

  std::uint64_t errors(ReadStatus status) const { return errors_[static_cast<std::size_t>(status)]; }

  /// The source of a counter that has a value, by gpu_meter_source_info; empty without one.
  std::string source_of(std::string_view quantity) const {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const SeriesSpec& series = device_->series()[i];
      const bool is_source = series.family->name == "gpu_meter_source_info";
      if (statuses_[i] == ReadStatus::ok && is_source && series.labels[0].value == quantity)
        return series.labels[1].value;
    }
    return "";
  }

  /// Returns the sorted lines, except gpu_meter_source_info and lines that start with one of `without`.
  std::string text(const std::vector<std::string_view>& without = {}) const {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const std::string_view name = device_->series()[i].family->name;
      const auto left_out = [&](std::string_view start) { return name.starts_with(start); };
      if (statuses_[i] != ReadStatus::ok || name == "gpu_meter_source_info") continue;
      if (std::none_of(without.begin(), without.end(), left_out)) lines.push_back(line(i));
    }
    std::sort(lines.begin(), lines.end());
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }

 private:
  std::string line(std::size_t slot) const {
    const SeriesSpec& series = device_->series()[slot];
    std::string text(series.family->name);
    const char* separator = "{";
    for (const Label& label : series.labels) {
      text += separator + label.name + "=\"" + label.value + "\"";
      separator = ",";
    }
    if (!series.labels.empty()) text += "}";
    char number[32];
    const auto end = std::to_chars(std::begin(number), std::end(number), values_[slot]).ptr;
    return text + " " + std::string(number, end);
  }

  std::unique_ptr<Device> device_;
  Nanoseconds now_{0};
  std::vector<double> values_;
  std::vector<ReadStatus> statuses_;
  ReadErrors errors_{};
};

}  // namespace gpumeter
