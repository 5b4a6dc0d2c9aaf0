#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectors/api/process_list.hpp"
#include "collectors/table/bound_rows.hpp"
#include "collectors/table/row.hpp"

namespace gpumeter {

/// The device's state at the start of a pass.
enum class Readiness : std::uint8_t { awake, asleep, gone };

/// A vendor's context: it opens the device's sources, closes them again, and prepares a pass. Preparing drops
/// the caches of the last pass and checks whether the device sleeps or is gone.
template <class Context>
concept TableContext = requires(Context context, const DeviceInfo& info, const Pass& pass) {
  { context.open(info) } -> std::same_as<Result<Done>>;
  { context.close() } noexcept;
  { context.begin_pass(pass) } noexcept -> std::same_as<Readiness>;
};

/// A context whose device may be divided. partitions() returns the partitions as of open(); turn_to() selects
/// the one to which the rows bound next belong.
template <class Context>
concept Divisible = requires(Context context, std::size_t partition) {
  { context.partitions() } -> std::same_as<std::span<const Partition>>;
  { context.turn_to(partition) } noexcept;
};

/// A context that may find sources unreadable while it is opened or while rows are bound, although they
/// exist. end_binding() is called after the last bind, has_more() after each fast pass (see
/// Device::has_more).
template <class Context>
concept BindsAgain = requires(Context context, Nanoseconds now) {
  { context.end_binding() };
  { context.has_more(now) } noexcept -> std::same_as<bool>;
};

/// A context that has info series in addition to its rows. Their labels are known once its rows are bound.
template <class Context>
concept DescribesItself = requires(Context context) {
  { context.info_series() } -> std::same_as<std::vector<SeriesSpec>>;
};

/// A context that counts things whose labels are known once they occur. counted_series() is called at attach,
/// set_counts() after each fast pass with the slot of the first of them. has_more() (BindsAgain) asks for
/// another attach when there are more.
template <class Context>
concept CountsKinds = requires(Context context, std::size_t first, SampleSink& sink) {
  { context.counted_series() } -> std::same_as<std::vector<SeriesSpec>>;
  { context.set_counts(first, sink) } noexcept;
};

/// A device whose series are rows of a constexpr table. All calls on its lane's thread.
template <TableContext Context>
class TableDevice : public Device {
 public:
  using Row = MetricRow<Context>;

  /// Both tables must have static storage. `of_partitions`: the rows of each partition of a divided device.
  TableDevice(Context context, std::span<const Row> rows, std::span<const Row> of_partitions = {})
      : context_(std::move(context)), rows_(rows), partition_rows_(of_partitions), states_(rows.size()) {}

  // Readers refer to the context.
  TableDevice(const TableDevice&) = delete;
  TableDevice& operator=(const TableDevice&) = delete;

  Result<Done> attach(const DeviceInfo& info) override {
    if (Result<Done> opened = context_.open(info); !opened) return opened;
    SeriesPlan plan;
    for (BoundRows& rows : bound_) rows.clear();
    bind(rows_, states_, plan);
    if constexpr (DescribesItself<Context>) {
      for (SeriesSpec& series : context_.info_series()) plan.add_constant(std::move(series));
    }
    if constexpr (CountsKinds<Context>) first_kind_ = plan.add(context_.counted_series());
    bind_partitions(plan);
    own_counters_.clear();
    for (const BoundRows& rows : bound_) rows.list_own_counters(own_counters_);
    if constexpr (BindsAgain<Context>) context_.end_binding();
    constants_ = plan.constants();
    series_ = plan.take();
    return Done{};
  }

  std::span<const SeriesSpec> series() const override { return series_; }

  std::span<const std::size_t> own_counters() const override { return own_counters_; }

  void resume(std::size_t slot, double total) noexcept override {
    for (BoundRows& rows : bound_) {
      if (rows.resume(slot, total)) return;
    }
  }

  void release() noexcept override { context_.close(); }

  PassOutcome sample(const Pass& pass, SampleSink& sink) noexcept override {
    BoundRows& rows = bound_[static_cast<std::size_t>(pass.tier)];
    if (!rows.is_under_way()) {
      readiness_ = context_.begin_pass(pass);
      rows.begin();
      if (pass.tier == Tier::once) export_constants(sink);
    }
    if (readiness_ == Readiness::gone) return PassOutcome::gone;
    const bool is_asleep = readiness_ == Readiness::asleep;
    if (!rows.sample(pass, is_asleep, sink)) return PassOutcome::interrupted;
    const PassOutcome outcome = is_asleep ? PassOutcome::asleep : rows.outcome();
    rows.settle(pass, outcome == PassOutcome::complete, sink);
    if constexpr (CountsKinds<Context>) {
      if (pass.tier == Tier::fast) context_.set_counts(first_kind_, sink);
    }
    return outcome;
  }

  bool has_more(Nanoseconds now) noexcept override {
    if constexpr (BindsAgain<Context>) {
      return readiness_ == Readiness::awake && context_.has_more(now);
    }
    return false;
  }

 protected:
  Context& context() noexcept { return context_; }

  /// Before attach(): the device has another table from now on. Nothing of the old one is kept.
  void use(std::span<const Row> rows) {
    for (BoundRows& bound : bound_) bound.clear();
    rows_ = rows;
    states_ = States(rows.size());
    partition_states_.clear();
  }

 private:
  // By first row of a series; null: never bound, as most rows of a table. They outlive a loss, so counters
  // continue when a device returns.
  using States = std::vector<std::unique_ptr<RowState>>;
  struct PartitionStates {
    std::string identity;
    States states;
  };

  void bind(std::span<const Row> rows, States& states, SeriesPlan& plan) {
    for (const Row& row : rows) {
      if (plan.has(*row.family, row.labels.unpacked())) continue;
      Reader read = row.source.bind(context_, row.source.read);
      if (!read) continue;
      std::unique_ptr<RowState>& known = states[first_of_series(rows, row)];
      if (!known) known = std::make_unique<RowState>();
      RowState& state = *known;
      if (!state.plan(row, read.settles(), plan)) continue;
      state.attach();
      bound_[static_cast<std::size_t>(row.tier)].add(row, state, std::move(read));
    }
  }

  void bind_partitions(SeriesPlan& plan) {
    if constexpr (Divisible<Context>) {
      const std::span<const Partition> partitions = context_.partitions();
      for (std::size_t i = 0; i < partitions.size(); ++i) {
        context_.turn_to(i);
        plan.begin_partition(partitions[i]);
        bind(partition_rows_, states_of(partitions[i]), plan);
      }
    }
  }

  // A new partition with the name of an old one starts with empty states.
  States& states_of(const Partition& partition) {
    PartitionStates& known = partition_states_[partition.name];
    const bool is_new = known.states.empty() || known.identity != partition.identity;
    if (is_new) known = {partition.identity, States(partition_rows_.size())};
    return known.states;
  }

  // Rows of one series share a state; at attach only.
  static std::size_t first_of_series(std::span<const Row> rows, const Row& row) {
    std::size_t first = 0;
    while (!rows[first].same_series(row)) ++first;
    return first;
  }

  void export_constants(SampleSink& sink) const noexcept {
    for (const std::size_t slot : constants_) sink.set(slot, 1);
  }

  Context context_;
  std::span<const Row> rows_;
  const std::span<const Row> partition_rows_;
  States states_;
  std::map<std::string, PartitionStates> partition_states_;  // by name of the partition
  std::array<BoundRows, kTiers.size()> bound_;               // by tier
  std::vector<SeriesSpec> series_;
  std::vector<std::size_t> constants_;
  std::vector<std::size_t> own_counters_;
  std::size_t first_kind_ = 0;  // slot of the first counted series
  Readiness readiness_ = Readiness::awake;
};

/// A context that lists the processes on its device, with the contract of ListsProcesses.
template <class Context>
concept KnowsProcesses = requires(Context context, const Pass& pass, std::vector<DeviceProcess>& out) {
  { Context::kProcessesTier } -> std::convertible_to<Tier>;
  { context.processes(pass, out) } noexcept -> std::same_as<ReadStatus>;
};

/// A TableDevice with such a context.
template <KnowsProcesses Context>
class ListingDevice final : public TableDevice<Context>, public ListsProcesses {
 public:
  using TableDevice<Context>::TableDevice;

  Tier processes_tier() const noexcept override { return Context::kProcessesTier; }
  ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept override {
    return this->context().processes(pass, out);
  }
};

}  // namespace gpumeter
