#include "daemon/journal_sink.hpp"

#include <spdlog/sinks/base_sink.h>

#include <cstdio>
#include <mutex>
#include <string_view>
#include <vector>

#include "systemd/journal.hpp"

namespace gpumeter {
namespace {

// Values have every control character escaped (to_journal), so that this one can end a field.
constexpr char kFieldEnd = '\0';

std::vector<std::string> unpack(std::string_view entry) {
  std::vector<std::string> fields;
  while (!entry.empty()) {
    const std::size_t end = entry.find(kFieldEnd);
    fields.emplace_back(entry.substr(0, end));
    entry.remove_prefix(end == std::string_view::npos ? entry.size() : end + 1);
  }
  return fields;
}

class JournalSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const auto fields = unpack({message.payload.data(), message.payload.size()});
    if (fields.empty() || systemd::send_to_journal(fields) >= 0) return;
    std::fprintf(stderr, "%s\n", fields.front().c_str());
  }
  void flush_() override {}
};

}  // namespace

std::string pack_journal_entry(std::span<const std::string> fields) {
  std::string entry;
  for (const std::string& field : fields) (entry += field) += kFieldEnd;
  return entry;
}

std::shared_ptr<spdlog::sinks::sink> make_journal_sink() { return std::make_shared<JournalSink>(); }

}  // namespace gpumeter
