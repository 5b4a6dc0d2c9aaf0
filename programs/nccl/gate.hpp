#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/text.hpp"
#include "programs/nccl/settings.hpp"

namespace gpumeter::nccl {

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

/// Whether NCCL of a user may be asked. The label `state` of gpumeter_nccl_state.
enum class State : std::uint8_t {
  asked,            ///< the last query was answered
  failed,           ///< the last query was not answered, or by no valid document
  old_version,      ///< a process has an NCCL whose RAS may crash the job
  unknown_version,  ///< a process with RAS has an NCCL of unknown version, or is not on a GPU
  no_permission,    ///< the maps of a process cannot be read
};
inline constexpr EnumNames<State, 5> kStateNames = {{{State::asked, "asked"},
                                                     {State::failed, "failed"},
                                                     {State::old_version, "old_version"},
                                                     {State::unknown_version, "unknown_version"},
                                                     {State::no_permission, "no_permission"}}};
constexpr std::string_view to_string(State state) noexcept { return kStateNames.of(state); }

/// The gate's decision about the processes of one user.
struct Verdict {
  std::optional<State> refusal;  ///< nullopt: all of them may be asked
  std::string reason;            ///< of the refusal, for the log
  std::vector<int> members;      ///< the processes whose RAS listens
};

/// Decides without a connection whether RAS may be asked: a connection would be the risk. Every process of
/// the user on a GPU that has NCCL must have a version of at least `oldest`, and each socket that listens
/// must belong to such a process. NCCL within another library, as in some builds of PyTorch, has no version.
class Gate {
 public:
  Gate(std::string procfs, Version oldest) : procfs_(std::move(procfs)), oldest_(oldest) {}

  /// `pids`: the user's processes on GPUs. `sockets`: inodes of the user's listening sockets.
  Verdict check(const std::vector<int>& pids, const std::set<std::uint64_t>& sockets);

 private:
  struct Member {
    std::vector<Mapping> libraries;
    std::set<std::uint64_t> sockets;
    int error = 0;  ///< errno of the first failure
  };
  /// Of a library's file, which is searched once: device, inode, size and time.
  using FileKey = std::tuple<std::uint64_t, std::uint64_t, std::int64_t, std::int64_t>;

  Member look_at(int pid, const std::set<std::uint64_t>& sockets) const;
  void judge(int pid, const Member& member, Verdict& verdict);
  /// Returns nullopt if the version cannot be found, as for a file that was replaced since the process mapped
  /// it.
  std::optional<Version> version_of(int pid, const Mapping& mapping);

  const std::string procfs_;
  const Version oldest_;
  std::map<FileKey, std::optional<Version>> found_;
};

}  // namespace gpumeter::nccl
