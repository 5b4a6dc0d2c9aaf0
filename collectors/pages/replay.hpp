#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/options.hpp"
#include "base/result.hpp"
#include "collectors/api/part.hpp"

/// Recordings: what `gpumeter record` writes and `gpumeter --replay` shows.
namespace gpumeter::pages {

/// Limits of a recording, which may be a stranger's. A page of 35 000 series has 5 MB.
inline constexpr std::size_t kMostRecordedBytes = std::size_t{64} << 20U;  ///< a page
inline constexpr std::size_t kMostRecordedSeries = 200'000;                ///< a page

/// The page of a daemon at one time; empty: the daemon did not answer.
struct RecordedPage {
  std::int64_t time = 0;  ///< Unix time in milliseconds
  std::string text;       ///< in Prometheus' text format
};

/// The line before each page.
std::string heading_of(const RecordedPage& page);

/// A file of pages, each after its heading and compressed as a gzip member of its own: zcat(1) prints it, and
/// of one that ends too early only the last page is lost. It need not be compressed. One thread.
class Recording {
 public:
  /// Opens the file, which must be a regular one.
  static Result<Recording> open(const std::string& path);
  /// Takes the open file.
  Recording(Descriptor&& file, std::string name);

  /// Returns the next page, or nullopt at the end. The Error names the file and the byte at which the record
  /// begins.
  Result<std::optional<RecordedPage>> next();

 private:
  struct Close {
    void operator()(void* file) const noexcept;
  };
  /// The end of the file, or what is wrong.
  Result<std::optional<RecordedPage>> end(std::string_view wrong) const;

  std::string name_;
  std::int64_t begin_ = 0;             ///< of the record, in bytes of the file
  std::unique_ptr<void, Close> file_;  ///< a gzFile
};

/// Error: the file cannot be read, or does not begin with a recorded page.
Result<Done> check_recording(const std::string& path);

/// `replay` in the configuration.
struct ReplaySettings {
  std::string file;    ///< empty: no recording
  unsigned speed = 1;  ///< seconds of the recording a second
  bool operator==(const ReplaySettings&) const = default;
};
extern const options::Section kReplaySection;

/// Shows the pages of a recording at their times, and gpumeter_replay_time_seconds. It replaces all that
/// reads this machine.
extern const PartEntry kReplay;

}  // namespace gpumeter::pages
