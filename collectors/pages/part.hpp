#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/options.hpp"
#include "collectors/api/part.hpp"

namespace gpumeter::pages {

/// The door for figures that are not the daemon's: files in Prometheus' text format.
struct Settings {
  std::vector<std::string> folders = {"/run/gpumeter/pages"};  ///< a missing one has no pages
  /// Users besides root who may use every name; those that /etc/passwd does not have do not exist.
  std::vector<std::string> trusted = {"gpumeter", "gpumeter-servers", "gpumeter-nccl", "gpumeter-profiler"};
  Duration expires = std::chrono::minutes(5);  ///< of pages that do not say otherwise
  bool operator==(const Settings&) const = default;
};

/// `pages` in the configuration.
extern const options::Section kSection;

/// Limits of pages. A page beyond one is not shown, and the log names it.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 20U;  ///< a page
inline constexpr std::size_t kMostSeries = 2000;                  ///< a page
inline constexpr std::size_t kMostPages = 64;                     ///< a user
inline constexpr std::size_t kMostBytesOfUser = std::size_t{4}
                                                << 20U;  ///< all pages of a user who is not trusted
inline constexpr std::size_t kMostSeriesOfUser = 5000;   ///< the same
inline constexpr std::size_t kMostBytesOfAll = std::size_t{16} << 20U;  ///< of all users who are not trusted
inline constexpr std::size_t kMostSeriesOfAll = 20'000;                 ///< the same

/// Shows the series of the files NAME.prom in some folders in which other users write, and their age. Follows
/// no link, waits for no FIFO, opens no device. A folder's file system may hang.
extern const PartEntry kPart;

}  // namespace gpumeter::pages
