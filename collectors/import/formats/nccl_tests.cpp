#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "collectors/import/formats/formats.hpp"
#include "collectors/import/lines.hpp"

namespace gpumeter::import {
namespace {

constexpr double kBytes = 1e9;         // of GB/s in nccl-tests
constexpr double kMicrosecond = 1e-6;  // of a time

/// "#  Rank  0 Group  0 Pid 4063850 on   lrdn2296 device  0 [0000:1d:00] NVIDIA A100-SXM-64GB"; older
/// versions have only the bus, "[0x0f]".
struct Rank {
  std::string host;
  unsigned device = 0;
  std::string pci;
};

std::optional<Rank> rank_of(std::string_view line) {
  const auto place = after(line, " on ");
  if (!after(line, "Rank") || !place) return std::nullopt;
  const std::vector<std::string_view> words = words_of(*place);
  if (words.size() < 3 || words[1] != "device") return std::nullopt;
  const auto device = parse_number<unsigned>(words[2]);
  if (!device || *device >= 1024) return std::nullopt;
  Rank rank{std::string(words[0]), *device, {}};
  if (words.size() > 3 && words[3].starts_with('[') && words[3].ends_with(']')) {
    rank.pci = pci_address(words[3].substr(1, words[3].size() - 2));
  }
  return rank;
}

/// The three figures of one way of a row, and its errors.
struct Way {
  double seconds = 0;
  double algorithm = 0;  ///< bytes per second
  double bus = 0;
  std::optional<bool> has_errors;  ///< nullopt: not checked
};

std::optional<Way> way_of(const std::vector<std::string_view>& words, std::size_t at) {
  if (words.size() < at + 4) return std::nullopt;
  const auto time = measure(words[at]);
  const auto algorithm = measure(words[at + 1]);
  const auto bus = measure(words[at + 2]);
  const auto errors = measure(words[at + 3]);
  if (!time || !algorithm || !bus || (!errors && words[at + 3] != "N/A")) return std::nullopt;
  Way way{*time * kMicrosecond, *algorithm * kBytes, *bus * kBytes, {}};
  if (errors) way.has_errors = *errors > 0;
  return way;
}

class Parser {
 public:
  std::optional<Error> take(const TextLine& line) {
    line_ = line.number;
    const std::string_view text = trimmed(line.text);
    if (const auto name = after(text, "# Collective test starting:")) test_ = std::string(*name);
    if (const auto average = after(text, "# Avg bus bandwidth")) return take_average(*average);
    if (text.starts_with('#')) {
      if (auto rank = rank_of(text)) ranks_.push_back(*std::move(rank));
      if (after(text, "algbw") && after(text, "root")) has_root_ = true;
      if (after(text, "#wrong")) counts_errors_ = true;
      return std::nullopt;
    }
    const std::vector<std::string_view> words = words_of(text);
    const auto size = words.empty() ? std::nullopt : parse_number<std::uint64_t>(words[0]);
    return size ? take_row(words, static_cast<double>(*size)) : std::nullopt;  // else a line of NCCL's log
  }

  Result<Sheet> end(const std::string& host) {
    if (ranks_.empty() || !has_rows_) return at_line(line_, "no results of nccl-tests");
    if (!average_) return at_line(line_, "the average at the end is missing: the file is cut");
    const bool is_here = std::ranges::any_of(ranks_, [&](const Rank& rank) { return rank.host == host; });
    if (!is_here)
      return at_line(line_, hosts() + "; this machine is " + host + ". Give the right one with --host");
    Sheet sheet;
    for (const Rank& rank : ranks_) {
      if (rank.host == host) put(sheet.gpus[rank.device], rank);
    }
    return sheet;
  }

 private:
  /// size count type redop [root] time algbw busbw #wrong time algbw busbw #wrong
  std::optional<Error> take_row(const std::vector<std::string_view>& words, double size) {
    const std::size_t first = has_root_ ? 5 : 4;
    const auto out = way_of(words, first);
    const auto in = way_of(words, first + 4);
    if (!out || !in || words.size() != first + 8)
      return at_line(line_, "a row without its twelve or thirteen fields");
    has_rows_ = true;
    for (const Way& way : {*out, *in}) {
      if (way.has_errors && counts_errors_) failed_ = failed_.value_or(false) || *way.has_errors;
    }
    if (size > 0 && (!smallest_ || size < smallest_size_)) {
      smallest_ = out;
      smallest_size_ = size;
    }
    if (size >= largest_size_) {
      largest_[0] = *out;
      largest_[1] = *in;
      largest_size_ = size;
    }
    return std::nullopt;
  }

  std::optional<Error> take_average(std::string_view text) {
    std::string_view value = text;
    take_until(value, ':');
    const std::vector<std::string_view> words = words_of(value);
    const auto number = words.empty() ? std::nullopt : measure(words[0]);
    if (!number) return at_line(line_, "no average");
    average_ = *number * kBytes;
    return std::nullopt;
  }

  void put(GpuResults& gpu, const Rank& rank) const {
    gpu.pci = rank.pci;
    gpu.result(test_ + " busbw average", kBytesPerSecond, *average_);
    gpu.result(test_ + " busbw out-of-place", kBytesPerSecond, largest_[0].bus);
    gpu.result(test_ + " busbw in-place", kBytesPerSecond, largest_[1].bus);
    gpu.result(test_ + " algbw out-of-place", kBytesPerSecond, largest_[0].algorithm);
    gpu.result(test_ + " algbw in-place", kBytesPerSecond, largest_[1].algorithm);
    if (smallest_) gpu.result(test_ + " time of the smallest", kSeconds, smallest_->seconds);
    if (failed_) gpu.verdict(*failed_);
  }

  std::string hosts() const {
    std::set<std::string> names;
    for (const Rank& rank : ranks_) names.insert(rank.host);
    std::string text = "the ranks ran on";
    for (const std::string& name : names) text += ' ' + name;
    return text;
  }

  std::string test_ = "collective";
  std::size_t line_ = 1;
  std::vector<Rank> ranks_;
  bool has_root_ = false;
  bool counts_errors_ = false;
  bool has_rows_ = false;
  Way largest_[2];
  double largest_size_ = 0;
  std::optional<Way> smallest_;
  double smallest_size_ = 0;
  std::optional<double> average_;
  std::optional<bool> failed_;
};

}  // namespace

Result<Sheet> parse_nccl_tests(std::string_view text, const Context& context) {
  const auto lines = lines_of(text);
  if (!lines) return lines.error();
  Parser parser;
  for (const TextLine& line : *lines) {
    if (auto error = parser.take(line)) return *error;
  }
  return parser.end(context.host);
}

}  // namespace gpumeter::import
