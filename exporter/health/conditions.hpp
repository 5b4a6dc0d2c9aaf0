#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "collectors/api/descriptor.hpp"
#include "collectors/api/series.hpp"
#include "collectors/events/xids.hpp"

/// The table of conditions: what makes a GPU degraded or failed, read from the store's series. The judge
/// (judge.hpp) evaluates it; docs, alerts, `gpumeter check` and the pages take names and texts from it.
namespace gpumeter::health {

inline constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

using events::Action;
using events::kActionNames;
using events::kSeverityNames;
using events::Severity;
using events::to_string;

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
  below_usual,        ///< the highest value that the device ever had, or what most of the same model have
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
  /// One sentence; {value} is the value, {of} the reading that limits it, {link} names the link.
  std::string_view text;
  std::chrono::seconds hold;  ///< how long it must hold before it counts
  Term terms[kMostTerms];
};

/// Whether each link of a device is judged by itself: the first term reads a series of single links. A term
/// or limit that a link has no series of is the device's.
bool is_of_links(const Condition& condition) noexcept;

/// Readings whose growth proves that a device was reset or its driver was started anew: the events that a
/// reset would clear are then no news any more. The driver's request for a recovery ends when it was served.
std::span<const Reading> proofs_of_reset() noexcept;

/// All conditions of a device, without those of the XID catalogue (collectors/events/xids.hpp).
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
std::string test_text(const Term& term);

}  // namespace gpumeter::health
