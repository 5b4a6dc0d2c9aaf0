#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gpumeter::nccl {

/// The labels of the operations of a file, each from a closed set.
struct OperationKey {
  std::string_view op;     ///< kOps of answer.hpp, and all_to_all, gather, scatter, send, receive
  std::string_view size;   ///< of the messages: "64KiB-1MiB"
  std::string_view scope;  ///< "node": all ranks on one machine; otherwise "network"

  auto operator<=>(const OperationKey&) const = default;
};

/// Means of operations since Inspector's last dump. nullopt: Inspector has none.
struct OperationMeans {
  std::optional<double> bandwidth;  ///< bytes per second on the bus
  std::optional<double> duration;   ///< seconds
};

/// The kinds of ml_nccl_recorded_operations_total and ml_nccl_lost_operations_total.
inline constexpr std::array<std::string_view, 2> kOperationKinds = {"collective", "point_to_point"};

struct InspectorPage {
  std::map<OperationKey, OperationMeans> means;
  std::array<std::optional<double>, kOperationKinds.size()> recorded;  ///< since the job's start
  std::array<std::optional<double>, kOperationKinds.size()> lost;
  std::string complaint;  ///< about the first bad line: "line 3: ..."; empty: none
};

/// Keys of one file. A file with all operations, sizes and scopes would have 132; jobs have 5 to 20.
inline constexpr std::size_t kMostKeys = 64;

/// Parses a Prometheus file of NCCL Inspector (plugins/profiler/inspector/inspector_prom.cc of NCCL 2.28 to
/// 2.30): two lines for each bucket, without HELP and TYPE, families interleaved, GB/s of 10^9 bytes and
/// microseconds, message sizes in buckets one unit wide. Lines that share our labels have no weights: a
/// bandwidth is their geometric mean and a duration their arithmetic mean, as Inspector's own are. A bad line
/// is skipped. Families of later versions are ignored.
InspectorPage parse_inspector_page(std::string_view text);

}  // namespace gpumeter::nccl
