#include "collectors/kernel/journal.hpp"

#include <systemd/sd-journal.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace gpumeter::kernel {
namespace {

constexpr std::string_view kOfKernel = "_TRANSPORT=kernel";
constexpr std::uint64_t kDay = std::chrono::microseconds(std::chrono::hours(24)).count();

struct Close {
  void operator()(sd_journal* journal) const noexcept { sd_journal_close(journal); }
};
using Journal = std::unique_ptr<sd_journal, Close>;

Journal open_journal(const std::string& folder) {
  sd_journal* journal = nullptr;
  constexpr int kFlags = SD_JOURNAL_LOCAL_ONLY | SD_JOURNAL_SYSTEM;
  const int result = folder.empty() ? sd_journal_open(&journal, kFlags)
                                    : sd_journal_open_directory(&journal, folder.c_str(), 0);
  return Journal(result < 0 ? nullptr : journal);
}

bool match(sd_journal& journal, std::string_view field) {
  return sd_journal_add_match(&journal, field.data(), field.size()) >= 0;
}

/// The value of a field of the entry; empty: it has none.
std::string field_of(sd_journal& journal, const char* name) {
  const void* data = nullptr;
  std::size_t size = 0;
  if (sd_journal_get_data(&journal, name, &data, &size) < 0) return {};
  const std::string_view field(static_cast<const char*>(data), size);
  return std::string(field.substr(std::min(field.find('=') + 1, size)));
}

std::optional<std::uint64_t> time_of(sd_journal& journal) {
  std::uint64_t microseconds = 0;
  if (sd_journal_get_realtime_usec(&journal, &microseconds) < 0) return std::nullopt;
  return microseconds;
}

/// Goes to the last message of an earlier boot: directly before the first one of this boot.
bool go_before(sd_journal& journal, const std::string& boot) {
  if (!match(journal, kOfKernel) || !match(journal, "_BOOT_ID=" + boot)) return false;
  if (sd_journal_seek_head(&journal) < 0 || sd_journal_next(&journal) <= 0) return false;
  const auto first = time_of(journal);
  sd_journal_flush_matches(&journal);
  return first && match(journal, kOfKernel) && sd_journal_seek_realtime_usec(&journal, *first - 1) >= 0 &&
         sd_journal_previous(&journal) > 0;
}

}  // namespace

// Records that user space wrote into the kernel's log have the same transport and another facility.
std::vector<JournalLine> lines_of_previous_boot(const std::string& folder, const std::string& boot,
                                                std::size_t most) {
  std::vector<JournalLine> lines;
  const Journal journal = open_journal(folder);
  if (journal == nullptr || !go_before(*journal, boot)) return lines;
  const std::string previous = field_of(*journal, "_BOOT_ID");
  const std::uint64_t last = time_of(*journal).value_or(0);
  for (std::size_t i = 0; i < most; ++i) {
    const auto time = time_of(*journal);
    if (!time || *time + kDay < last || field_of(*journal, "_BOOT_ID") != previous) break;
    if (field_of(*journal, "SYSLOG_FACILITY") == "0")
      lines.push_back({std::chrono::microseconds(*time), field_of(*journal, "MESSAGE")});
    if (sd_journal_previous(journal.get()) <= 0) break;
  }
  std::ranges::reverse(lines);
  return lines;
}

}  // namespace gpumeter::kernel
