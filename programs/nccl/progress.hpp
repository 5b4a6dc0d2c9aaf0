#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "exporter/store/series_list.hpp"
#include "programs/nccl/ras.hpp"

namespace gpumeter::nccl {

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
