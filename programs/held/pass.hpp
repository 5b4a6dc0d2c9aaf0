#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "programs/held/probe.hpp"

namespace gpumeter::held {

struct Settings {
  Roots roots;
  std::string folder = "/run/gpumeter-held";
  /// Nodes that the administrator states to be given by Slurm: names below /dev, or "nvidia" and "dri" for
  /// all of them.
  std::set<std::string> managed;
  /// A job's group is entered this long after it was first seen, because Slurm sets the filter after it makes
  /// the group.
  std::chrono::seconds settle{10};
};

/// The question of probe.hpp; tests answer it themselves.
using Ask =
    std::function<Result<std::vector<Access>>(const std::string& group, std::span<const std::string> paths)>;

/// What a pass did. The texts are messages for the administrator.
struct Outcome {
  std::size_t jobs = 0;     ///< with a control group
  std::size_t entered = 0;  ///< in this pass
  std::vector<std::string> failures;
};

/// Reads the jobs, enters the group of each new one once, and brings the files of the folder up to date.
/// `now`: since 1970. Error: the folder cannot be used. Blocks for 2 s a new job at most, usually for 20 ms.
Result<Outcome> pass(const Settings& settings, const Ask& ask, std::chrono::seconds now);

}  // namespace gpumeter::held
