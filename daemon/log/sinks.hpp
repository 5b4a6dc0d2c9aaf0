#pragma once

#include <memory>
#include <span>
#include <string>

namespace spdlog::sinks {
class sink;
}

namespace gpumeter {

/// An spdlog sink that writes each payload as one line to stderr and reports what cannot be written. It uses
/// the descriptor alone: a stalled reader must hold no lock that stdio or another sink needs, as it does with
/// spdlog's own.
std::shared_ptr<spdlog::sinks::sink> make_stderr_sink();

/// One journal entry as the text that spdlog hands to its sinks.
std::string pack_journal_entry(std::span<const std::string> fields);

/// An spdlog sink that sends packed entries to the journal. spdlog's own has no fields besides the message.
/// Entries that the journal rejects go to stderr.
std::shared_ptr<spdlog::sinks::sink> make_journal_sink();

}  // namespace gpumeter
