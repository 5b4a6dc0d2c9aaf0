#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What a file of another benchmark says about GPUs, and the lines that the daemon takes (docs/operations.md,
/// "Results of benchmarks").
namespace gpumeter::import {

/// A unit of a file, and the base unit that the daemon shows. Case is ignored.
struct Unit {
  std::string_view name;  ///< in the file
  std::string_view base;  ///< the label `unit`
  double scale;
};
/// Returns nullptr if the unit is not known.
const Unit* find_unit(std::string_view name) noexcept;

inline constexpr std::string_view kBytesPerSecond = "bytes_per_second";
inline constexpr std::string_view kFlops = "flops";
inline constexpr std::string_view kSeconds = "seconds";

/// Names and values of tags.
using Tags = std::vector<std::pair<std::string_view, std::string>>;

/// The results of one GPU. If a file has several values of one rate, as for vector widths or peers, the
/// highest counts.
class GpuResults {
 public:
  /// "0000:0c:00.0"; empty: the file does not give it.
  std::string pci;
  /// The file's verdict; nullopt: it has none.
  std::optional<bool> failed;

  /// Operations per second of matrix multiplication; `dtype` must be one of the daemon's.
  void flops(std::string_view dtype, std::string_view backend, double value);
  /// read, write, copy or triad; bytes read and written are added.
  void memory_bandwidth(std::string_view operation, double bytes_per_second);
  /// host_to_device, device_to_host or device_to_device.
  void transfer(std::string_view direction, double bytes_per_second);
  /// Anything else. The last value of a test counts.
  void result(std::string_view test, std::string_view unit, double value);
  /// The same, but the highest value of a test counts.
  void best_result(std::string_view test, std::string_view unit, double value);
  /// A failure of one part is one of the whole.
  void verdict(bool has_failed) { failed = failed.value_or(false) || has_failed; }

  /// The daemon's limit for a GPU (collectors/jobs/benchmarks). A file with more is refused.
  static constexpr std::size_t kMost = 256;

  bool empty() const noexcept { return values_.empty() && !failed; }
  bool has_too_many() const noexcept { return values_.size() > kMost; }
  /// One datagram. `device`: the tag that names the GPU, such as "gpu:3". `timestamp`: Unix time in seconds.
  std::string lines(std::string_view device, std::string_view suite, double timestamp) const;

 private:
  struct Value {
    std::string_view metric;
    Tags tags;
    double value;
  };
  Value& at(std::string_view metric, Tags tags, double value);
  void keep_best(std::string_view metric, Tags tags, double value);

  std::vector<Value> values_;
};

/// The results of a file.
struct Sheet {
  std::string suite;
  std::map<unsigned, GpuResults> gpus;  ///< by the file's own number of the GPU
  bool is_of_machine = false;           ///< `gpus` has one entry, which is about all GPUs that took part
  std::optional<double> timestamp;      ///< Unix time in seconds
};

/// "00000008:06:00", "0000:0C:00.0", "05:0.0" or "0c:00.0" as sysfs writes it; empty if the text is no
/// address.
std::string pci_address(std::string_view text);

}  // namespace gpumeter::import
