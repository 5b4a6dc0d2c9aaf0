#include "collectors/nccl/files/inspector_page.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "base/text.hpp"
#include "collectors/sources/page/sample_lines.hpp"

namespace gpumeter::nccl {
namespace {

/// Names of ncclFuncToString() in Inspector.
struct OperationName {
  std::string_view in_file;
  std::string_view label;
};
constexpr OperationName kOperationNames[] = {
    {"AllGather", "all_gather"},
    {"AllReduce", "all_reduce"},
    {"AlltoAll", "all_to_all"},
    {"Broadcast", "broadcast"},
    {"Gather", "gather"},
    {"Recv", "receive"},
    {"Reduce", "reduce"},
    {"Scatter", "scatter"},
    {"ReduceScatter", "reduce_scatter"},
    {"Send", "send"},
};
constexpr std::string_view kOtherOperation = "other";  // of a later NCCL

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit kUnits[] = {{"B", 1}, {"KB", 0x1p10}, {"MB", 0x1p20}, {"GB", 0x1p30}, {"TB", 0x1p40}};

/// Our buckets. Inspector's are one unit wide, so none of them crosses a bound.
struct SizeBucket {
  double below;
  std::string_view label;
};
constexpr SizeBucket kSizes[] = {{0x1p16, "0-64KiB"},     {0x1p20, "64KiB-1MiB"},
                                 {0x1p24, "1MiB-16MiB"},  {0x1p28, "16MiB-256MiB"},
                                 {0x1p32, "256MiB-4GiB"}, {HUGE_VAL, "4GiB and more"}};

/// The families of a file that hold means.
struct MeanFamily {
  std::string_view name;
  std::string_view op_label;
  bool is_bandwidth;
};
constexpr MeanFamily kMeanFamilies[] = {
    {"nccl_bus_bandwidth_gbs", "collective", true},
    {"nccl_collective_exec_time_microseconds", "collective", false},
    {"nccl_p2p_bus_bandwidth_gbs", "p2p_operation", true},
    {"nccl_p2p_exec_time_microseconds", "p2p_operation", false},
};
constexpr double kBytesPerSecond = 1e9;  // of GB/s
constexpr double kSeconds = 1e-6;        // of a microsecond

/// The families that count, if the job sets NCCL_INSPECTOR_PROM_DUMP_STATS.
struct CountFamily {
  std::string_view name;
  std::size_t kind;
  bool is_lost;
};
constexpr CountFamily kCountFamilies[] = {{"nccl_collectives_total", 0, false},
                                          {"nccl_collectives_dropped_total", 0, true},
                                          {"nccl_p2p_total", 1, false},
                                          {"nccl_p2p_dropped_total", 1, true}};

/// The arithmetic or the geometric mean of positive values; one value is its own mean, exactly.
struct Mean {
  double total = 0;  ///< of the values, or of their logarithms
  double last = 0;
  double count = 0;

  void add(double value, double term) { total += term, last = value, ++count; }
  std::optional<double> arithmetic() const {
    return count == 0 ? std::nullopt : std::optional(total / count);
  }
  std::optional<double> geometric() const {
    return count <= 1 ? (count == 0 ? std::nullopt : std::optional(last))
                      : std::optional(std::exp(total / count));
  }
};
struct Means {
  Mean bandwidth;
  Mean duration;
};

std::string_view operation_of(std::string_view name) {
  const auto found = std::ranges::find(kOperationNames, name, &OperationName::in_file);
  return found == std::end(kOperationNames) ? kOtherOperation : found->label;
}

/// "0B", or the bounds of a bucket: "4-5GB". nullopt: neither.
std::optional<std::string_view> size_of(std::string_view text) {
  const std::optional<std::uint64_t> lower = take_number<std::uint64_t>(text);
  if (!lower) return std::nullopt;
  if (text.starts_with('-')) {
    text.remove_prefix(1);
    if (!take_number<std::uint64_t>(text)) return std::nullopt;
  }
  const auto unit = std::ranges::find(kUnits, text, &Unit::name);
  if (unit == std::end(kUnits)) return std::nullopt;
  const double bytes = static_cast<double>(*lower) * unit->bytes;
  return std::ranges::find_if(kSizes, [&](const SizeBucket& each) { return bytes < each.below; })->label;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lines_(text) {}

  InspectorPage parse() {
    while (lines_.next()) take(lines_.sample());
    if (lines_.first_bad_line() != 0) complain(lines_.first_bad_line(), "is no sample of a metric");
    for (const auto& [key, means] : means_) {
      page_.means[key] = {means.bandwidth.geometric(), means.duration.arithmetic()};
    }
    if (complained_at_ != 0)
      page_.complaint = "line " + std::to_string(complained_at_) + ": " + page_.complaint;
    return std::move(page_);
  }

 private:
  void take(const SampleLine& sample) {
    const auto mean = std::ranges::find(kMeanFamilies, sample.name, &MeanFamily::name);
    if (mean != std::end(kMeanFamilies)) return take_mean(*mean, sample);
    const auto count = std::ranges::find(kCountFamilies, sample.name, &CountFamily::name);
    if (count == std::end(kCountFamilies)) return;
    if (!is_good(sample.value)) return;
    (count->is_lost ? page_.lost : page_.recorded).at(count->kind) = sample.value;
  }

  void take_mean(const MeanFamily& family, const SampleLine& sample) {
    if (!is_good(sample.value)) return;
    const std::string_view operation = sample.label(family.op_label);
    if (operation.empty()) return complain("has no label " + std::string(family.op_label));
    const auto size = size_of(sample.label("message_size"));
    if (!size) {
      return complain("message_size must be a range such as \"4-5GB\", not " +
                      gpumeter::quoted(first_bytes(sample.label("message_size"), 32)));
    }
    // 0: Inspector has no value, because no operation of the bucket was timed.
    if (sample.value == 0) return;
    const std::string_view scope = sample.label("n_nodes") == "1" ? "node" : "network";
    const OperationKey key = {operation_of(operation), *size, scope};
    if (!means_.contains(key) && means_.size() == kMostKeys) {
      return complain("more than " + std::to_string(kMostKeys) +
                      " combinations of operation, size and scope");
    }
    const double value = sample.value * (family.is_bandwidth ? kBytesPerSecond : kSeconds);
    if (family.is_bandwidth) {
      means_[key].bandwidth.add(value, std::log(value));
    } else {
      means_[key].duration.add(value, value);
    }
  }

  bool is_good(double value) {
    if (std::isfinite(value) && value >= 0) return true;
    complain("the value must be a number from 0 on");
    return false;
  }

  void complain(std::string text) { complain(lines_.line(), std::move(text)); }
  void complain(std::size_t line, std::string text) {
    if (complained_at_ != 0 && complained_at_ <= line) return;
    complained_at_ = line;
    page_.complaint = std::move(text);
  }

  SampleLines lines_;
  std::map<OperationKey, Means> means_;
  InspectorPage page_;
  std::size_t complained_at_ = 0;
};

}  // namespace

InspectorPage parse_inspector_page(std::string_view text) { return Parser(text).parse(); }

}  // namespace gpumeter::nccl
