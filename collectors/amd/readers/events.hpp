#pragma once

#include <cstddef>
#include <string_view>

#include "collectors/amd/readers/blob.hpp"

/// Readers of each xGMI link, which bind on request only, and of the card's events.
namespace gpumeter::amd {

namespace readers {

Reader bind_link_counter(AmdContext& context, const ReadSource& source);
Reader bind_link_status(AmdContext& context, const ReadSource& source);
Reader bind_event(AmdContext& context, const ReadSource& source);

}  // namespace readers

/// A link's counter: "gpu_metrics.xgmi_read_data_acc[3]". Binds like blob_counter().
consteval AmdSource link_counter(std::string_view name) {
  return {readers::bind_link_counter, {name, readers::element_of(name)}};
}

/// 1 while the link is up. Not bound if the link is not present (2).
consteval AmdSource link_status(std::string_view name) {
  return {readers::bind_link_status, {name, readers::element_of(name)}};
}

/// Events of a kind, by place in kEvents; `unsupported` while the driver does not report any.
constexpr AmdSource event_count(std::size_t place) noexcept {
  return {readers::bind_event, {"AMDKFD_IOC_SMI_EVENTS", place}};
}

}  // namespace gpumeter::amd
