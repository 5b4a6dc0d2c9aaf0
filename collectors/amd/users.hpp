#pragma once

#include <dirent.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectors/sources/screens.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::amd {

/// Users that keep a card awake which could otherwise fall asleep. One is a screen that is on (kernel 6.12,
/// amdgpu_drv.c, amdgpu_runtime_idle_check_display). Another is a process that holds the card's memory
/// through the compute driver, which holds a reference for each card in use (kfd_process.c,
/// kfd_bind_process_to_device). The files behind both do not wake the card. Such a card is read as usual
/// however idle it is: skipping it would lose its values and save no power. Lane thread.
class AmdUsers {
 public:
  AmdUsers() = default;
  /// `gpu_ids`: the card's numbers in the compute driver.
  AmdUsers(const std::string& card_folder, const std::string& sysfs_root, std::vector<std::uint32_t> gpu_ids);

  bool any() const noexcept { return screens_.any_on() || process_computes(); }

 private:
  struct CloseFolder {
    void operator()(DIR* folder) const noexcept { ::closedir(folder); }
  };
  bool process_computes() const noexcept;
  bool holds_memory(const char* pid) const noexcept;

  Screens screens_;
  std::unique_ptr<DIR, CloseFolder> processes_;
  std::vector<std::uint32_t> gpu_ids_;
};

}  // namespace gpumeter::amd
