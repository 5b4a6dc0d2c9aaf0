#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "exporter/store/store.hpp"
#include "exporter/text/shown.hpp"

namespace gpumeter::otlp {

/// An ExportMetricsServiceRequest.
struct Request {
  std::string body;
  std::size_t points = 0;
};

/// The attributes of the resource.
using Attributes = std::map<std::string, std::string>;

/// A view of the store as messages of opentelemetry-proto 1.x (opentelemetry/proto/metrics/v1/metrics.proto).
/// One thread.
class Encoder {
 public:
  /// Bytes from which on a request is ended and another begun. The Collector accepts 20 MiB, others less.
  static constexpr std::size_t kLargest = std::size_t{1} << 20U;

  /// The store must outlive the encoder. `has_conventions`: series are called as mappings() has them.
  Encoder(const Store& store, PageSelection selection, const Attributes& resource, bool has_conventions,
          std::size_t largest = kLargest);

  /// All series now. A request ends between two points: a family may be in several.
  std::vector<Request> encode(const PageTime& now);

 private:
  class Batch;

  const Store& store_;
  const PageSelection selection_;
  const std::string resource_;  ///< a Resource
  const bool has_conventions_;
  const std::size_t largest_;
  std::vector<FamilySeries> families_;  ///< by Family::id()
};

/// What a receiver answered in an ExportMetricsServiceResponse, or in a google.rpc.Status.
struct Answer {
  std::int64_t rejected = 0;  ///< points
  std::string message;
};
/// `is_accepted`: a response, otherwise a Status. The Error says that it is malformed.
Result<Answer> decode_answer(std::string_view body, bool is_accepted);

}  // namespace gpumeter::otlp
