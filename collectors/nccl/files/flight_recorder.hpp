#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "collectors/nccl/files/flight_dump.hpp"
#include "collectors/nccl/files/inspector.hpp"
#include "collectors/nccl/files/owners.hpp"
#include "collectors/nccl/files/user_folder.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter::nccl {

/// Follows the dumps of PyTorch's flight recorder: files whose names are a prefix and the number of a rank. A
/// dump counts if its owner has a process on a GPU of this machine when it is first seen, and keeps the run
/// of that moment. The files of others take only places that are left, and the users who count share the
/// places. One thread, which blocks as the folders' file systems do.
class FlightRecorder {
 public:
  static constexpr std::size_t kMostFiles = 64;                ///< with one prefix
  static constexpr std::size_t kMostBytes = 32U << 20U;        ///< 10,000 entries with stacks
  static constexpr Nanoseconds kKept = std::chrono::hours(1);  ///< how long a dump stays on the page
  /// Ranks dump together, because the first that times out tells the others through the job's store. A dump
  /// that is older than the last one of its prefix and owner by more than this is of an earlier stall.
  static constexpr Nanoseconds kTogether = std::chrono::minutes(10);
  /// The processes of a younger dump are still there, or left within the minute for which they are
  /// remembered.
  static constexpr Nanoseconds kFresh = std::chrono::minutes(2);

  FlightRecorder(std::vector<std::string> prefixes, SayFile say)
      : prefixes_(std::move(prefixes)), say_(std::move(say)) {}

  /// Reads the dumps that changed. `now`: since 1970. Returns true if one is torn, so that another look in a
  /// second or two is worthwhile.
  bool look(const Owners& owners, Nanoseconds now);
  /// Adds the series of all dumps.
  void write(SeriesList& out) const;
  /// Adds the number of files in each state to `counts`.
  void count(std::map<FileState, std::size_t>& counts) const;

 private:
  struct Known {
    FileState state = FileState::torn;
    FileStamp stamp;  ///< of the last reading
    FlightDump dump;
    RunLabels run;
    unsigned rank = 0;
    std::string prefix;
    std::string error;
    std::string said;         ///< the last complaint
    bool is_present = false;  ///< at this look
  };

  std::vector<std::string> names_in(const UserFolder& folder, const std::string& path,
                                    const std::string& base, const Owners& owners) const;
  void look_at(const UserFolder& folder, const std::string& name, const Owners& owners, Nanoseconds now,
               Known& known);
  FileState read(const UserFolder& folder, const std::string& name, const FileStamp& seen, Nanoseconds now,
                 Known& known) const;
  void drop_earlier();

  const std::vector<std::string> prefixes_;
  const SayFile say_;
  std::map<std::string, Known> files_;  ///< by path
  std::map<std::string, std::string> folders_said_;
};

}  // namespace gpumeter::nccl
