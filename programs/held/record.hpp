#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

/// What the helper knows of each job: one file per job, with lines NAME=VALUE.
namespace gpumeter::held {

struct Record {
  /// pending: the job is too young; failed: its group could not be entered, and is not entered again.
  enum class State { pending, asked, failed };

  State state = State::pending;
  std::uint64_t group =
      0;  ///< inode of the job's group: a requeued job has its number again, in another group
  std::set<std::string> allowed;  ///< PCI addresses that the job's filter permits
  std::set<std::string> denied;
  std::set<std::string> gpus;  ///< held by the job: what the daemon reads

  bool operator==(const Record&) const = default;
};

/// By the name of the job's group: a job number or a SLUID.
using Records = std::map<std::string, Record, std::less<>>;

/// The file's text. WORKLOAD, KIND and GPU are those of `gpumeter allocate`.
std::string to_text(const std::string& job, const Record& record);
/// Ignores unknown lines.
Record parse_record(std::string_view text);

/// Sets Record::gpus of all: a job holds the `managed` GPUs that its filter permits, which are those that the
/// filter of some job denied, and the `named` ones. Another GPU may be none of the scheduler's, such as one
/// for a display, and open to every job. A filter that denies no GPU may be none at all; then only the
/// `named` ones count, for which the administrator vouches.
void judge(Records& records, const std::set<std::string>& managed, const std::set<std::string>& named);

}  // namespace gpumeter::held
