#pragma once

#include <cstddef>
#include <vector>

#include "collectors/nvidia/nvml/constants.hpp"

namespace gpumeter::nvidia {

/// Calls a function of NVML that fills a list: repeats call() with `count` set to the room until the room
/// suffices, and returns the last result. `count` is then the number of entries, at most the room if the
/// result is SUCCESS. Lane thread; throws only what a vector does.
template <class Entry, class Call>
unsigned ask_with_room(std::vector<Entry>& room, unsigned& count, Call call) {
  // Libraries request room for 100 (NVIDIA/go-nvml#11). A request above the maximum is rejected.
  constexpr std::size_t kLeastRoom = 128;
  constexpr std::size_t kMostRoom = 4096;
  if (room.empty()) room.resize(kLeastRoom);
  for (;;) {
    count = static_cast<unsigned>(room.size());
    const unsigned result = call();
    if (result != nvml::kInsufficientSize || count <= room.size() || count > kMostRoom) return result;
    room.resize(count);
  }
}

}  // namespace gpumeter::nvidia
