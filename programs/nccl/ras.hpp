#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter::nccl {

/// The state of a rank, from good to bad. The label `state` of ml_nccl_ranks.
enum class RankState : std::uint8_t {
  ok,       ///< also while a communicator is initialised
  error,    ///< an asynchronous error, a failed initialisation, or aborted
  missing,  ///< the process did not answer NCCL's own query
  dead,     ///< NCCL gave the process up
};
inline constexpr std::size_t kRankStates = 4;
inline constexpr EnumNames<RankState, kRankStates> kRankStateNames = {{{RankState::ok, "ok"},
                                                                       {RankState::error, "error"},
                                                                       {RankState::missing, "missing"},
                                                                       {RankState::dead, "dead"}}};
constexpr std::string_view to_string(RankState state) noexcept { return kRankStateNames.of(state); }

/// The label `op` of ml_nccl_collectives_total, with the name in NCCL's answer.
struct Op {
  std::string_view label;
  std::string_view in_answer;
};
inline constexpr std::array<Op, 6> kOps = {{{"broadcast", "Broadcast"},
                                            {"reduce", "Reduce"},
                                            {"all_gather", "AllGather"},
                                            {"reduce_scatter", "ReduceScatter"},
                                            {"all_reduce", "AllReduce"},
                                            {"other", ""}}};  // an operation of a later NCCL
using Counts = std::array<std::uint64_t, kOps.size()>;

/// A member of a communicator: one GPU of one process.
struct Rank {
  int rank = -1;     ///< in its communicator
  std::string host;  ///< an IP address, or "unknown"
  int pid = -1;      ///< in the process's own PID namespace; -1: unknown
  int device = -1;   ///< its index on its machine
  RankState state = RankState::ok;
  bool has_counts = false;  ///< false: it did not answer
  Counts launched{};        ///< operations that were launched, not completed

  std::uint64_t total() const noexcept;
};

struct Communicator {
  std::string id;  ///< unique in the job
  int size = 0;
  std::vector<Rank> ranks;
};

/// The answer of one job to STATUS.
struct Answer {
  std::string version;
  std::vector<Communicator> communicators;
};

/// Limits of an answer. 1024 GPUs with 64 communicators each are 65,536 ranks, of some 600 bytes.
inline constexpr std::size_t kMostAnswerBytes = 48U << 20U;
inline constexpr std::size_t kMostRanks = 100'000;  ///< in all communicators

/// Parses NCCL's JSON (docs of NCCL 2.28.7 and later, "RAS", JSON output; src/ras/client_support.cc). A torn
/// document is an Error, and so is one beyond the limits. Unknown keys are skipped.
Result<Answer> parse_answer(std::string_view text);

/// Limits of one query.
struct QueryLimits {
  Nanoseconds patience = std::chrono::seconds(15);  ///< NCCL's own limits are 5 s a leg and 10 s in all
  std::size_t most_bytes = 0;
};

/// Asks RAS on a loopback address by the text protocol of NCCL's documentation ("RAS", RAS Queries): for JSON
/// and for the status of the job. Returns the whole document, after which the server closes the connection. A
/// server before 2.28.7 has text only, which is an Error. `family`: AF_INET or AF_INET6. `clock` must be the
/// system's. Blocks for `limits.patience` at most.
Result<std::string> ask_ras(const Clock& clock, int family, std::uint16_t port, QueryLimits limits);

/// What the answers of one run show over time. One thread.
class Progress {
 public:
  using IsLocal = std::function<bool(const Rank&)>;

  /// Series of ml_nccl_stalled_rank; the ranks with the lowest numbers are named.
  static constexpr std::size_t kMostNamed = 16;

  /// Takes an answer. `is_local`: the rank is of this machine. `now`: CLOCK_MONOTONIC.
  void update(const Answer& answer, const IsLocal& is_local, Nanoseconds now);

  /// Adds the ml_nccl_* families except the time of the last success. `labels`: run and user.
  void write(const Labels& labels, SeriesList& out) const;

  /// Returns true if the lowest rank of the largest communicator that answered is of this machine. A query is
  /// work for all processes of the job, so the other machines ask seldom.
  bool leads() const noexcept { return leads_; }

 private:
  /// One GPU of the job, which may be a member of several communicators.
  struct GpuId {
    std::string host;
    int pid = -1;
    int device = -1;
    std::string unknown;  ///< distinguishes ranks without a known process

    auto operator<=>(const GpuId&) const = default;
  };
  struct Gpu {
    int rank = -1;  ///< in the largest of its communicators
    int of_size = 0;
    RankState state = RankState::ok;
    bool is_behind = false;
  };
  struct Seen {
    Counts launched{};
    bool was_behind = false;
  };
  /// The labels rank, host and state of ml_nccl_stalled_rank.
  struct Stalled {
    int rank = -1;
    std::string host;
    std::string_view state;

    auto operator<=>(const Stalled&) const = default;
  };
  using MemberId = std::pair<std::string, int>;  // communicator and rank

  static GpuId id_of(const Communicator& communicator, const Rank& rank);
  void take(const Communicator& communicator, const IsLocal& is_local, std::map<MemberId, Seen>& seen);
  void count(const Rank& rank, const Seen* before);
  void note_lead(const Answer& answer, const IsLocal& is_local);
  std::vector<Stalled> stalled() const;

  std::map<GpuId, Gpu> gpus_;      // of the last answer
  std::map<MemberId, Seen> seen_;  // of the last answer
  std::array<double, kOps.size()> local_launches_{};
  std::uint64_t lag_ = 0;
  bool has_launched_ = false;
  bool has_advanced_ = false;  // since the answer before
  bool leads_ = false;
  Nanoseconds advanced_at_{};
  Nanoseconds answered_at_{};
};

}  // namespace gpumeter::nccl
