#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collectors/support/metric_row.hpp"
#include "collectors/support/row_state.hpp"

namespace gpumeter {

/// What a context says at the start of a pass.
enum class Readiness : std::uint8_t { awake, asleep, gone };

/// What a table asks of a vendor's context beside its readers: open what the device is read from, close it
/// again, and get ready for a pass (drop the caches of the last one, look whether the device sleeps or is
/// gone).
template <class Context>
concept TableContext = requires(Context context, const DeviceInfo& info, const Pass& pass) {
  { context.open(info) } -> std::same_as<Result<Done>>;
  { context.close() } noexcept;
  { context.begin_pass(pass) } noexcept -> std::same_as<Readiness>;
};

/// A device whose series are rows of a constexpr table. All calls on its lane's thread.
template <TableContext Context>
class TableDevice final : public Device {
 public:
  using Row = MetricRow<Context>;

  /// `rows` must have static storage.
  TableDevice(Context context, std::span<const Row> rows)
      : context_(std::move(context)), rows_(rows), states_(rows.size()) {}

  Result<Done> attach(const DeviceInfo& info) override {
    if (Result<Done> opened = context_.open(info); !opened) return opened;
    SeriesPlan plan;
    bound_.clear();
    for (std::size_t i = 0; i < rows_.size(); ++i) bind(i, plan);
    series_ = plan.take(sources_);
    cursor_ = {};
    return Done{};
  }

  std::span<const SeriesSpec> series() const override { return series_; }

  void release() noexcept override { context_.close(); }

  PassOutcome sample(const Pass& pass, SampleSink& sink) noexcept override {
    std::size_t& cursor = cursor_[static_cast<std::size_t>(pass.tier)];
    if (cursor == 0) {
      readiness_ = context_.begin_pass(pass);
      if (pass.tier == Tier::once) sources_.export_to(sink);
    }
    if (readiness_ == Readiness::gone) return PassOutcome::gone;
    if (!sample_rows(pass, sink, cursor)) return PassOutcome::interrupted;
    cursor = 0;
    return readiness_ == Readiness::asleep ? PassOutcome::asleep : PassOutcome::complete;
  }

 private:
  struct Bound {
    std::size_t row;
    std::size_t state;
    int handle;
  };

  void bind(std::size_t i, SeriesPlan& plan) {
    const Row& row = rows_[i];
    if (plan.has(*row.family, row.labels)) return;
    const std::optional<int> handle = row.reader.bind(context_, row.reader.source);
    if (!handle) return;
    const std::size_t state = first_of_series(i);
    if (!states_[state].plan(&row, *row.family, row.labels, row.derived, plan)) return;
    bound_.push_back({i, state, *handle});
  }

  // Rows of one series share a state; at attach only.
  std::size_t first_of_series(std::size_t i) const {
    std::size_t first = 0;
    while (!rows_[first].same_series(rows_[i])) ++first;
    return first;
  }

  // False: stepped aside; `cursor` says where to go on.
  bool sample_rows(const Pass& pass, SampleSink& sink, std::size_t& cursor) noexcept {
    for (; cursor < bound_.size(); ++cursor) {
      const Row& row = rows_[bound_[cursor].row];
      if (row.tier != pass.tier) continue;
      if (pass.yield != nullptr && pass.yield->should_yield()) return false;
      sample_row(pass, row, bound_[cursor], sink);
    }
    return true;
  }

  void sample_row(const Pass& pass, const Row& row, const Bound& bound, SampleSink& sink) noexcept {
    RowState& state = states_[bound.state];
    if (readiness_ == Readiness::asleep && row.traits.wakes) return state.rest(sink);
    if (!state.due(pass.now)) return;
    const Sample raw = row.reader.read(context_, bound.handle);
    state.take(pass, raw, {row.derived.how, row.scale, &row.traits}, sink);
  }

  Context context_;
  const std::span<const Row> rows_;
  std::vector<RowState> states_;  // by first row of a series: counters go on when a device comes back
  std::vector<Bound> bound_;
  std::vector<SeriesSpec> series_;
  SourceSlots sources_;
  std::array<std::size_t, kTiers.size()> cursor_{};
  Readiness readiness_ = Readiness::awake;
};

}  // namespace gpumeter
