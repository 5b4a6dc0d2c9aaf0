#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "collectors/nccl/files/inspector_page.hpp"
#include "collectors/nccl/files/owners.hpp"
#include "collectors/nccl/files/user_folder.hpp"
#include "collectors/nccl/settings.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter::nccl {

/// Takes a change of a file's complaint for the log: its path, and what is wrong and in which line. Empty:
/// the file is read again without complaint.
using SayFile = std::function<void(const std::string& path, const std::string& complaint)>;

/// Follows the Prometheus files of NCCL Inspector in a folder. The file of a GPU counts if its owner has a
/// process on that GPU. The values are those of the last complete file. One thread, which blocks as the
/// folder's file system does.
class Inspector {
 public:
  static constexpr std::size_t kMostFiles = 512;        ///< 64 GPUs of 8 instances
  static constexpr std::size_t kMostBytes = 4U << 20U;  ///< some 10,000 lines of one file
  static constexpr int kKept = 3;  ///< intervals without a dump after which values leave the page

  Inspector(InspectorSettings settings, SayFile say) : settings_(std::move(settings)), say_(std::move(say)) {}

  /// Reads the files that changed. `now`: since 1970. Returns true if a file is torn, so that another look in
  /// a second or two is worthwhile.
  bool look(const Owners& owners, Nanoseconds now);
  /// Adds the series of all files.
  void write(SeriesList& out) const;
  /// Adds the number of files in each state to `counts`.
  void count(std::map<FileState, std::size_t>& counts) const;

 private:
  struct Known {
    FileState state = FileState::torn;
    FileStamp stamp;                    ///< of `page`
    std::optional<InspectorPage> page;  ///< of the last complete file
    std::string error;                  ///< of this look
    std::string said;                   ///< the last complaint
    GpuPlace place;
    RunLabels run;
    bool is_present = false;  ///< at this look
  };

  static std::vector<std::string> names_in(const UserFolder& folder, const Owners& owners);
  FileState look_at(const UserFolder& folder, const std::string& name, const Owners& owners, Nanoseconds now);
  FileState judge(const UserFolder& folder, const std::string& name, const Owners& owners, Nanoseconds now,
                  Known& known) const;
  FileState read(const UserFolder& folder, const std::string& name, const FileStamp& seen, Nanoseconds now,
                 Known& known) const;
  bool is_stale(const FileStamp& stamp, Nanoseconds now) const;
  void say(const std::string& path, std::string& said, const std::string& complaint) const;
  static void write(const Known& known, SeriesList& out);

  const InspectorSettings settings_;
  const SayFile say_;
  std::map<std::string, Known> files_;  ///< by name
  std::string folder_said_;
};

}  // namespace gpumeter::nccl
