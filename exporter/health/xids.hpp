#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "exporter/health/conditions.hpp"

namespace gpumeter::health {

enum class XidClass : std::uint8_t {
  immediate,  ///< the GPU or a part of it does not work until the action was taken
  job,        ///< ends one process; the GPU works. A finding only if a severity is given
  noise,      ///< informative; another condition reports what matters of it
};
inline constexpr EnumNames<XidClass, 3> kXidClassNames = {
    {{XidClass::immediate, "immediate"}, {XidClass::job, "job"}, {XidClass::noise, "noise"}}};

/// A code of NVIDIA's XID catalogue.
struct Xid {
  std::string_view code;  ///< the label's value: "79", or "other"
  XidClass kind;
  Action action;
  std::string_view bucket;   ///< the catalogue's resolution bucket (immediate action)
  std::string_view meaning;  ///< "GPU has fallen off the bus"
  bool is_finding = true;    ///< makes the GPU degraded or failed
  Severity severity = Severity::degraded;
};

/// All codes that have a series of their own, by number, and "other".
std::span<const Xid> xids() noexcept;

/// The conditions of the codes that are findings: reason "xid_<code>".
std::span<const Condition> xid_conditions();

}  // namespace gpumeter::health
