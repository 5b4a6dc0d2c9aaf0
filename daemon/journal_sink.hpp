#pragma once

#include <memory>
#include <span>
#include <string>

namespace spdlog::sinks {
class sink;
}

namespace gpumeter {

/// One journal entry as the text that spdlog hands to its sinks.
std::string pack_journal_entry(std::span<const std::string> fields);

/// An spdlog sink that sends packed entries to the journal. spdlog's own knows no fields beside the message.
/// What the journal does not take goes to stderr.
std::shared_ptr<spdlog::sinks::sink> make_journal_sink();

}  // namespace gpumeter
