#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>

#include "collectors/amd/events.hpp"

namespace gpumeter::amd {

/// Pipes in place of the driver's event streams.
class SmiPipes final : public SmiDevice {
 public:
  Result<Descriptor> open_stream(std::uint32_t gpu_id, std::uint64_t mask) override {
    if (refuses) return Error("/dev/kfd: Permission denied");
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error("no pipe");
    masks[gpu_id] = mask;
    writers[gpu_id] = Descriptor(ends[1]);
    return Descriptor(ends[0]);
  }
  void write(std::uint32_t gpu_id, const char* text) {
    const auto size = static_cast<ssize_t>(std::strlen(text));
    if (::write(writers.at(gpu_id).number(), text, std::strlen(text)) != size)
      throw std::runtime_error("pipe");
  }

  bool refuses = false;
  std::map<std::uint32_t, std::uint64_t> masks;
  std::map<std::uint32_t, Descriptor> writers;
};

}  // namespace gpumeter::amd
