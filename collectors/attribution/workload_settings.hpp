#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "collectors/attribution/workload_book.hpp"

namespace gpumeter {

/// A user's name for a label, digits where there is none. Any thread.
using UserName = std::function<std::string(std::uint32_t uid)>;

/// What all devices share that tell who uses them; fixed while the daemon runs.
struct WorkloadSettings {
  std::shared_ptr<workloads::WorkloadBook> book;  ///< null: config `workloads.enabled` is false
  std::string procfs = "/proc";
  bool processes = false;  ///< whether each process has series of its own
  UserName user_name = [](std::uint32_t uid) { return std::to_string(uid); };
};

}  // namespace gpumeter
