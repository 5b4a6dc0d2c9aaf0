#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "collectors/api/descriptor.hpp"
#include "collectors/api/series.hpp"

/// The table of conditions: what makes a GPU degraded or failed, read from the store's series. The judge
/// (judge.hpp) evaluates it; docs, alerts, `gpumeter check` and the pages take names and texts from it.
namespace gpumeter::health {

inline constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

enum class Severity : std::uint8_t {
  degraded,  ///< works, but slower or with less safety than it should
  failed,    ///< must not get new work before the action was taken
};
inline constexpr EnumNames<Severity, 2> kSeverityNames = {
    {{Severity::degraded, "degraded"}, {Severity::failed, "failed"}}};
constexpr std::string_view to_string(Severity severity) noexcept { return kSeverityNames.of(severity); }

/// The action that helps.
enum class Action : std::uint8_t {
  none,         ///< watch it
  restart_job,  ///< the job on the GPU has failed; the GPU works
  drain,        ///< let its jobs end, give it no new ones, then look at it: cooling, power, cables
  reset,        ///< reset the GPU after its jobs have ended
  reboot,       ///< reboot the machine
  replace,      ///< replace the card or its fan
};
inline constexpr EnumNames<Action, 6> kActionNames = {{{Action::none, "none"},
                                                       {Action::restart_job, "restart_job"},
                                                       {Action::drain, "drain"},
                                                       {Action::reset, "reset"},
                                                       {Action::reboot, "reboot"},
                                                       {Action::replace, "replace"}}};
constexpr std::string_view to_string(Action action) noexcept { return kActionNames.of(action); }

/// How the series of one device make one number.
enum class Reduce : std::uint8_t { sum, lowest, highest };

/// A number of one device: series of a family, selected by labels. Absent if none of them has a value.
struct Reading {
  const MetricDescriptor* family = nullptr;  ///< null: no reading
  LabelSet labels{};
  Reduce reduce = Reduce::sum;
  std::string_view text{};  ///< if set, the reading is the value of this label, for Compare::differs_*
  /// The value if the family is absent; NaN: the reading is then absent too.
  double if_absent = kAbsent;

  /// True if both read the same series.
  constexpr bool is_same(const Reading& other) const noexcept {
    return family == other.family && labels == other.labels && reduce == other.reduce && text == other.text;
  }
};

/// How a term looks at its reading over time.
enum class Over : std::uint8_t {
  now,      ///< the last value
  mean,     ///< the mean of the window
  highest,  ///< the highest value in the window
  rise,     ///< the growth of a counter within the window
  event,    ///< the growth of a counter with its last event, until the window has passed since
};

enum class Compare : std::uint8_t {
  above,
  below,
  differs_in_model,   ///< from most GPUs of the same vendor and model
  differs_in_vendor,  ///< from most GPUs of the same vendor
  below_usual,  ///< the highest value of the window, or what most GPUs of the same vendor and model have
};

/// One test of one reading. An absent reading passes no test.
struct Term {
  Reading reading{};
  Compare compare = Compare::above;
  double threshold = 0;
  Over over = Over::now;
  std::chrono::seconds window{0};
  Reading of{};            ///< if set, the limit is the threshold times this reading
  bool from_zero = false;  ///< the daemon itself counts the events from 0, so a first value above 0 is news
};

/// A window that ends only when the driver is closed for a reset.
inline constexpr std::chrono::seconds kUntilRelease = std::chrono::hours(24 * 365);

inline constexpr std::size_t kMostTerms = 3;

/// A row of the table. The condition holds while all of its terms do; its value is that of the first term.
struct Condition {
  std::string_view reason;  ///< rows of one reason are its variants; "xid_79" for a row of the XID catalogue
  Severity severity;
  Action action;
  std::string_view alert;  ///< the alert rule for it; its runbook is docs/runbooks.md#<alert in lower case>
  std::string_view text;   ///< one sentence; {value} is the value, {of} the reading that limits it
  std::chrono::seconds hold;  ///< how long it must hold before it counts
  Term terms[kMostTerms];
};

/// All conditions of a device, without those of the XID catalogue.
std::span<const Condition> conditions() noexcept;

/// Fewer GPUs are read than `devices.expected` states. A condition of the machine; its term describes the
/// test.
const Condition& devices_missing() noexcept;

/// All of the above, in the order of docs and findings: the machine, the devices, the XIDs.
std::span<const Condition> all_conditions();

/// The anchor of the runbook: the alert's name in lower case.
std::string runbook_of(const Condition& condition);

/// The terms as text: "gpu_up < 1", "mean of gpu_throttled{cause="thermal"} over 1 min > 0.1 and ...".
std::string test_text(const Condition& condition);

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

}  // namespace gpumeter::health
