#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/table/reader.hpp"
#include "collectors/table/row.hpp"
#include "collectors/table/row_state.hpp"

namespace gpumeter {

/// The rows of one tier that are bound on a device, in the table's order. It is the same for all vendors: a
/// pass over many rows takes most of its own time here. Lane thread.
class BoundRows {
 public:
  void clear() noexcept;
  /// `row` must have static storage, and `state` must outlive its binding.
  void add(const RowFacts& row, RowState& state, Reader read);

  // A pass: begin(), then sample() until it returns true, then settle().

  /// Forgets how the reads of the last pass ended.
  void begin() noexcept { seen_ = {}; }
  /// False between passes, and while a pass has not read its first row.
  bool is_under_way() const noexcept { return cursor_ != 0; }
  /// Reads the rows into the sink. `is_asleep`: rows that would wake the device are omitted. Returns false if
  /// the pass yielded; the next call continues it.
  bool sample(const Pass& pass, bool is_asleep, SampleSink& sink) noexcept;
  /// How a pass over an awake device ended.
  PassOutcome outcome() const noexcept;
  /// The pass has ended. Counters advance together or not at all, so that each is complete over the observed
  /// time.
  void settle(const Pass& pass, bool is_observed, SampleSink& sink) noexcept;

  /// Adds the slots of counters that gpumeter counts.
  void list_own_counters(std::vector<std::size_t>& slots) const;
  /// Continues the counter of that slot from the total of an earlier process. False: it is of another tier.
  bool resume(std::size_t slot, double total) noexcept;

 private:
  struct Bound {
    RowState* state;
    Reader read;
    bool wakes;  // the row's trait: a pass looks at it for each row
  };

  /// Bit 1 << RowState::Outcome of each read of a pass. A row that does not wake the device is read without
  /// it, so its success does not prove that the device answers: `awake` omits such rows.
  struct Seen {
    unsigned all = 0;
    unsigned awake = 0;
  };
  void sample_row(const Pass& pass, Bound& row, SampleSink& sink, Seen& seen) noexcept;

  std::vector<Bound> rows_;
  std::vector<RowState*> integrating_;
  std::vector<std::size_t> counting_;  // places in rows_ of readers that count by themselves
  std::size_t cursor_ = 0;             // of a pass that is under way
  Seen seen_;
};

}  // namespace gpumeter
