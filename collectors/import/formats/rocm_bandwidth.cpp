#include <optional>
#include <vector>

#include "base/text.hpp"
#include "collectors/import/formats/formats.hpp"
#include "collectors/import/lines.hpp"

namespace gpumeter::import {
namespace {

/// The program spells the second title with and without its first "i".
constexpr std::string_view kTitles[] = {"Unidirectional copy peak bandwidth",
                                        "Bidirectional copy peak bandwidth",
                                        "Bdirectional copy peak bandwidth"};
constexpr double kBytes = 1e9;  // of a GB of the program (rocm_bandwidth_test's base_test.cpp)
constexpr std::size_t kMostDevices = 512;

/// A device of the program: CPUs and GPUs share its numbers.
struct Device {
  bool is_gpu = false;
  std::string pci;
};

/// "Device: 2,  AMD Instinct MI210,  GPU-06c9d21390bc2e70,  05:0.0"; older versions have no GPU-id. A CPU has
/// no address.
Device device_of(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  std::string pci = words.empty() ? std::string() : pci_address(words.back());
  return {!pci.empty(), std::move(pci)};
}

class Parser {
 public:
  std::optional<Error> take(const TextLine& line) {
    line_ = line.number;
    const std::string_view text = trimmed(line.text);
    if (text.empty()) return std::nullopt;
    if (const auto command = after(text, "Launch Command is:")) return take_command(*command);
    if (text.starts_with("Device:")) return take_device(text.substr(7));
    for (const std::string_view title : kTitles) {
      if (text.starts_with(title)) return begin_matrix(title == kTitles[0]);
    }
    if (!is_in_matrix_) return std::nullopt;
    const std::vector<std::string_view> words = words_of(text);
    if (words.front() == "D/D") return take_header(words);
    return take_row(words);
  }

  Result<Sheet> end() {
    if (auto error = end_matrix()) return *error;
    if (devices_.empty()) return fail("no output of rocm-bandwidth-test");
    if (is_expected_[0] && !has_[0]) return fail("the unidirectional matrix is missing: the file is cut");
    if (is_expected_[1] && !has_[1]) return fail("the bidirectional matrix is missing: the file is cut");
    return std::move(sheet_);
  }

 private:
  Error fail(const std::string& reason) const { return at_line(line_, reason); }

  /// Without options the program copies in both ways, and writes both options here.
  std::optional<Error> take_command(std::string_view command) {
    is_expected_[0] = command.find("-a") != std::string_view::npos;
    is_expected_[1] = command.find("-A") != std::string_view::npos;
    return std::nullopt;
  }
  std::optional<Error> take_device(std::string_view text) {
    std::string_view rest = trimmed(text);
    const auto number = parse_number<std::size_t>(trimmed(take_until(rest, ',')));
    if (number != devices_.size() || devices_.size() >= kMostDevices) return fail("devices out of order");
    devices_.push_back(device_of(rest));
    if (devices_.back().is_gpu) sheet_.gpus[static_cast<unsigned>(*number)].pci = devices_.back().pci;
    return std::nullopt;
  }
  std::optional<Error> begin_matrix(bool is_one_way) {
    if (auto error = end_matrix()) return error;
    is_in_matrix_ = true;
    is_one_way_ = is_one_way;
    rows_ = 0;
    columns_.clear();
    return std::nullopt;
  }
  std::optional<Error> end_matrix() {
    if (!is_in_matrix_) return std::nullopt;
    is_in_matrix_ = false;
    if (columns_.empty() || rows_ != columns_.size()) {
      return fail("a matrix has " + std::to_string(rows_) + " rows instead of " +
                  std::to_string(columns_.size()) + ": the file is cut");
    }
    has_[is_one_way_ ? 0 : 1] = true;
    return std::nullopt;
  }
  std::optional<Error> take_header(const std::vector<std::string_view>& words) {
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto number = parse_number<std::size_t>(words[i]);
      if (!number || *number >= devices_.size()) return fail("a column of an unknown device");
      columns_.push_back(*number);
    }
    return std::nullopt;
  }
  std::optional<Error> take_row(const std::vector<std::string_view>& words) {
    if (!columns_.empty() && rows_ == columns_.size()) return end_matrix();  // text after the matrix
    const auto from = parse_number<std::size_t>(words.front());
    if (!from || *from >= devices_.size() || words.size() != columns_.size() + 1) {
      return fail("a row of the matrix has " + std::to_string(words.size()) + " fields instead of " +
                  std::to_string(columns_.size() + 1) + ": the file is cut");
    }
    ++rows_;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (words[i + 1] == "N/A") continue;
      const auto value = measure(words[i + 1]);
      if (!value) return fail("no number: " + gpumeter::quoted(words[i + 1]));
      take_cell(*from, columns_[i], *value * kBytes);
    }
    return std::nullopt;
  }

  void take_cell(std::size_t from, std::size_t to, double value) {
    const bool from_gpu = devices_[from].is_gpu;
    const bool to_gpu = devices_[to].is_gpu;
    GpuResults& source = sheet_.gpus[static_cast<unsigned>(from)];
    GpuResults& target = sheet_.gpus[static_cast<unsigned>(to)];
    if (!is_one_way_) {
      GpuResults& gpu = from_gpu ? source : target;
      gpu.best_result(from_gpu && to_gpu ? "bidirectional device" : "bidirectional host", kBytesPerSecond,
                      value);
    } else if (from == to) {
      source.memory_bandwidth("copy", value);  // the program counts reads and writes of such a copy
    } else if (from_gpu && to_gpu) {
      source.transfer("device_to_device", value);
    } else if (to_gpu) {
      target.transfer("host_to_device", value);
    } else if (from_gpu) {
      source.transfer("device_to_host", value);
    }
  }

  Sheet sheet_;
  std::size_t line_ = 1;
  std::vector<Device> devices_;
  bool is_expected_[2] = {true, true};
  bool has_[2] = {false, false};
  bool is_in_matrix_ = false;
  bool is_one_way_ = false;
  std::vector<std::size_t> columns_;
  std::size_t rows_ = 0;
};

}  // namespace

Result<Sheet> parse_rocm_bandwidth(std::string_view text, const Context&) {
  return parse_lines<Parser>(text);
}

}  // namespace gpumeter::import
