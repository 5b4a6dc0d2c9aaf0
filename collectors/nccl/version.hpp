#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace gpumeter::nccl {

/// A version of NCCL, or the version of NCCL that an RCCL follows.
struct Version {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;

  auto operator<=>(const Version&) const = default;
};

/// The first version whose RAS is asked. Queries crash jobs of earlier ones: during the initialisation of a
/// communicator before 2.27.3 (NVIDIA/nccl#1669, #1718), with missing ranks before 2.29.2 (#1762).
inline constexpr Version kOldestAsked = {2, 29, 2};

/// "2.29.3"
std::string to_string(const Version& version);

/// Removes a version from the start of the text; "2.30.7+cuda13.3" leaves "+cuda13.3".
std::optional<Version> take_version(std::string_view& text) noexcept;

/// The whole text is a version, as in the configuration.
std::optional<Version> parse_version(std::string_view text) noexcept;

/// True for the file names of NCCL and RCCL; false for their plugins (libnccl-net.so).
bool is_library(std::string_view file_name) noexcept;

/// Returns the version in a file name, as in libnccl.so.2.29.3. PyTorch's wheels install libnccl.so.2, and
/// the number in librccl.so.1.0.70302 is no version of NCCL: nullopt.
std::optional<Version> version_in_name(std::string_view file_name) noexcept;

/// Returns the version in the text "NCCL version 2.30.7 compiled with CUDA 13.3", which the library holds as
/// a constant. Skips "NCCL version mismatch" and the like.
std::optional<Version> find_version(std::string_view bytes) noexcept;

/// A library in the memory of a process.
struct Mapping {
  std::string path;  ///< as in /proc/PID/maps, with links resolved; relative to the process's root
  std::uint64_t inode = 0;

  bool operator==(const Mapping&) const = default;
};

/// Returns each mapped library of /proc/PID/maps once.
std::vector<Mapping> libraries_in(std::string_view maps);

/// The versions of libraries' files. A file without a version in its name is searched once. One thread.
class Libraries {
 public:
  /// The text is among the program's constants, which precede the code for GPUs: at 3 MB of the 250 MB of
  /// NCCL 2.30.7, and at 2 MB of the 430 MB of 2.27.3.
  static constexpr std::size_t kMostSearched = 64U << 20U;

  /// `root`: the process's root, /proc/PID/root. Returns nullopt if the version cannot be found, as for a
  /// file that was replaced since the process mapped it.
  std::optional<Version> version_of(const std::string& root, const Mapping& mapping);

 private:
  using FileKey =
      std::tuple<std::uint64_t, std::uint64_t, std::int64_t, std::int64_t>;  // device, inode, size, time

  std::map<FileKey, std::optional<Version>> found_;
};

}  // namespace gpumeter::nccl
