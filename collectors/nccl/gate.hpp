#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/enum_names.hpp"
#include "collectors/nccl/version.hpp"

namespace gpumeter::nccl {

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
  Member look_at(int pid, const std::set<std::uint64_t>& sockets) const;
  void judge(int pid, const Member& member, Verdict& verdict);

  const std::string procfs_;
  const Version oldest_;
  Libraries libraries_;
};

}  // namespace gpumeter::nccl
