#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collectors/api/process_list.hpp"
#include "collectors/nvidia/nvml/caller.hpp"

namespace gpumeter::nvidia {

/// The processes with a context on a GPU, merged from the driver's lists of compute processes, graphics
/// processes and MPS clients. Lane thread; throws only what a vector does.
class ProcessLists {
 public:
  void open(std::string_view driver_version);

  void begin() noexcept { entries_.clear(); }

  /// Adds the lists of a GPU, or of a MIG instance by the number of its GPU instance. `unsupported`: none of
  /// the lists exists.
  ReadStatus add(NvmlCaller& caller, unsigned gpu_instance = nvml::kNoInstance);

  bool empty() const noexcept { return entries_.empty(); }

  /// Appends all entries added since begin(): each pid once, in ascending order.
  void append_to(std::vector<DeviceProcess>& out);

 private:
  /// One line of one list.
  struct Entry {
    unsigned pid, gpu_instance, compute_instance;
    std::size_t list;
    std::uint64_t memory;
  };
  using Entries = std::span<const Entry>;

  template <auto Function>
  unsigned ask(NvmlCaller& caller, unsigned& count);
  template <auto Function>
  ReadStatus read(NvmlCaller& caller, std::size_t list, unsigned gpu_instance);
  bool take_in(std::size_t count, std::size_t list, unsigned gpu_instance);
  bool make_room(std::size_t count);

  static std::optional<double> memory_of(Entries process);
  static std::optional<double> memory_in_instance(Entries process);

  bool may_be_wide_ = false;
  std::vector<std::byte> room_;  // buffer for the driver, in either layout
  std::vector<Entry> entries_;
};

}  // namespace gpumeter::nvidia
