#pragma once

#include <string>

#include "collectors/sources/host/memory.hpp"

namespace gpumeter::nvidia {

/// The memory that an integrated GPU shares with its host, read once a pass for all rows, so that used and
/// free sum to the size. Lane thread.
class UnifiedMemory {
 public:
  explicit UnifiedMemory(const std::string& procfs) : file_(procfs) {}

  void begin_pass() noexcept { is_fresh_ = false; }

  const HostMemoryFile::Reading& read() noexcept {
    if (!is_fresh_) reading_ = file_.read();
    is_fresh_ = true;
    return reading_;
  }

 private:
  HostMemoryFile file_;
  HostMemoryFile::Reading reading_{};
  bool is_fresh_ = false;
};

}  // namespace gpumeter::nvidia
