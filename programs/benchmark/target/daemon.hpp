#pragma once

#include <chrono>
#include <vector>

#include "base/result.hpp"
#include "exporter/client/http_get.hpp"
#include "programs/benchmark/target/gpu.hpp"

namespace gpumeter::benchmark {

/// The daemon, asked over HTTP. Blocks. One thread.
class Daemon {
 public:
  Daemon(HttpAddress address, HttpAccess access) : address_(std::move(address)), access_(std::move(access)) {}

  /// All GPUs with all that parse_gpus() knows. The Error names the address and a remedy.
  Result<std::vector<Gpu>> gpus() const;

 private:
  Result<std::string> body(const char* path) const;

  HttpAddress address_;
  HttpAccess access_;
};

}  // namespace gpumeter::benchmark
