#pragma once

#include <string>
#include <vector>

/// The GPUs of the machine and their device nodes.
namespace gpumeter::held {

/// Where the kernel's file systems are.
struct Roots {
  std::string dev = "/dev";
  std::string procfs = "/proc";
  std::string sysfs = "/sys";
};

struct Gpu {
  std::string pci_address;  ///< dddd:bb:dd.f, lower case
  std::string node;         ///< below /dev, by which schedulers give the GPU: nvidia0, dri/renderD128

  bool operator==(const Gpu&) const = default;
};

/// All GPUs with one node each, sorted by address. NVIDIA: the number of the node is in the driver's
/// /proc/driver/nvidia/gpus/ADDRESS/information; a GPU with MIG instances is left out, because its node is
/// open to the holders of all instances. Other drivers: the render node. Blocks as /proc and sysfs do.
std::vector<Gpu> read_gpus(const Roots& roots);

}  // namespace gpumeter::held
