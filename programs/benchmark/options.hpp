#pragma once

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "programs/client/http.hpp"

namespace gpumeter::benchmark {

/// After this the process that computes is killed.
inline constexpr std::chrono::milliseconds kLongest{20'000};
/// The tests' own limit: the last test and its verification end after it.
inline constexpr std::chrono::milliseconds kLongestTests{17'000};

/// The validated command line.
struct Options {
  std::vector<std::string> gpus;  ///< numbers, uuids or PCI addresses; empty: all
  bool cpu = false;               ///< measure OpenCL's processor instead of a GPU
  std::string report_as;          ///< with `cpu`: the uuid of the GPU under which the result is reported
  bool opencl = true;
  bool blas = true;
  std::chrono::milliseconds time = kLongestTests;  ///< of one GPU's tests
  client::Address address;
  client::Access access;
  std::string jobs_socket;  ///< empty: nothing is sent
  std::string history;      ///< a folder
  std::string lock;
  std::vector<std::string> library_paths;  ///< folders with the vendors' libraries
  bool json = false;

  bool needs_daemon() const noexcept { return !cpu || !report_as.empty(); }
};

/// An exit before the start. The text goes to stdout if the code is 0 (help, version), otherwise to stderr.
struct Exit {
  int code;
  std::string text;
};

std::variant<Options, Exit> parse_options(int argc, const char* const* argv);

}  // namespace gpumeter::benchmark
