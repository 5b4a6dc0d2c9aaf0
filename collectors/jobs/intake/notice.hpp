#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace gpumeter::jobs {

/// Something for the log: a message of fixed words, what it is about, and what was the matter.
struct Notice {
  std::string_view message;
  std::string path = {};
  std::string error = {};
};

/// Where notices go. Any thread; state changes only, never per message.
using Say = std::function<void(const Notice&)>;

}  // namespace gpumeter::jobs
