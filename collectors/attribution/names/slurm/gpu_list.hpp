#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/attribution/names/name_book.hpp"

namespace gpumeter::slurm {

/// The node's own list of GPUs, which turns a position into a device. Parsed from what `slurmd -G` prints, or
/// from gres.conf: lines with Name=gpu and File=, such as
///   Gres Name=gpu Type=a100 Count=2 Index=0 ID=7696487 File=/dev/nvidia[0-1] Links=-1,4 Flags=HAS_FILE
class GpuList {
 public:
  /// Limit of GPUs of one node.
  static constexpr std::size_t kMost = 256;

  GpuList() = default;
  /// Any bytes.
  static GpuList parse(std::string_view text);

  /// Number of devices; 0: the text has none.
  std::size_t size() const noexcept { return files_.size(); }
  /// The device at this position of slurmd's list. nullopt: there is none, or its file is no GPU's known name
  /// (/dev/nvidiaN, /dev/dri/renderDN).
  std::optional<workloads::DeviceSelector> at(std::size_t position) const;

 private:
  std::vector<std::string> files_;
};

}  // namespace gpumeter::slurm
