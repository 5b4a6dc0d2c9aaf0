#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collectors/import/sheet.hpp"

namespace gpumeter::import {

/// One datagram: the results of a GPU.
struct Parcel {
  std::string
      device;  ///< the tag that names the GPU to the daemon: "gpu:3", "uuid:GPU-...", "pci:0000:0c:00.0"
  std::string lines;
};

/// Which GPU of the daemon a GPU of the file is.
struct Mapping {
  std::map<unsigned, std::string> by_number;  ///< tag by the number in the file
  std::vector<std::string> in_order;          ///< tags without a number
};

/// `list`: GPUs separated by commas, each as NAME or NUMBER=NAME. `tag`: "gpu" for indexes, "uuid".
Result<Mapping> parse_mapping(std::string_view list, std::string_view tag);

/// Decides about each GPU of the file: the mapping by its number; the mapping in the order of numbers;
/// otherwise its PCI address. A file about one GPU or about a whole machine may be given to several GPUs. An
/// Error if a GPU stays unknown. `timestamp` is used if the file has no time.
Result<std::vector<Parcel>> parcels_of(const Sheet& sheet, const Mapping& mapping, double timestamp);

}  // namespace gpumeter::import
