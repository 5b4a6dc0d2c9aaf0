#include "collectors/files/device.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collectors/files/text.hpp"

namespace gpumeter::files {
namespace {

constexpr std::string_view kEach = "*";
constexpr std::string_view kEachSensor = "{*}";

/// The rows of one device. The texts of rows that were made for a sensor live as long as the object.
struct Expanded {
  std::vector<Row> rows;
  std::deque<std::string> texts;

  std::string_view keep(std::string text) { return texts.emplace_back(std::move(text)); }
};

bool is_for_each(const Row& row) {
  const LabelSet labels = row.labels.unpacked();
  return std::ranges::any_of(labels.pairs, [](const auto& pair) { return pair.value == kEach; });
}

void add_for_each(const Row& row, Paths& paths, Expanded& out) {
  const std::string_view name = row.source.read.name;
  const std::string_view rest =
      name.substr(std::min(name.find(kEachSensor) + kEachSensor.size(), name.size()));
  std::set<std::string> seen;
  for (const Sensor& sensor : paths.sensors_of(name)) {
    const std::string value = label_value(sensor.label);
    const bool is_left_out = sensor.index < static_cast<int>(row.source.read.argument);
    if (is_left_out || !seen.insert(value).second) continue;
    Row made = row;
    LabelSet labels = row.labels.unpacked();
    for (LabelSet::Pair& pair : labels.pairs) {
      if (pair.value == kEach) pair.value = out.keep(value);
    }
    made.labels = labels;
    made.source.read = {out.keep(sensor.stem + std::string(rest))};
    out.rows.push_back(made);
  }
}

void expand(std::span<const Row> rows, Paths paths, Expanded& out) {
  for (const Row& row : rows) {
    if (is_for_each(row)) {
      add_for_each(row, paths, out);
    } else {
      out.rows.push_back(row);
    }
  }
}

bool same_rows(const std::vector<Row>& a, const std::vector<Row>& b) {
  return std::ranges::equal(a, b, [](const Row& x, const Row& y) {
    return x.same_series(y) && x.source.read.name == y.source.read.name && x.source.bind == y.source.bind;
  });
}

/// A TableDevice whose table is known at attach. If the device returns with other sensors, its table and thus
/// its counters start again.
class EachSensorDevice final : public Device {
 public:
  EachSensorDevice(const Kind& kind, Roots roots) : kind_(kind), roots_(std::move(roots)) {}

  Result<Done> attach(const DeviceInfo& info) override {
    auto expanded = std::make_unique<Expanded>();
    expand(kind_.rows, Paths(roots_.sysfs, info.source, kind_.paths), *expanded);
    if (!table_ || !same_rows(expanded->rows, expanded_->rows)) {
      table_.reset();
      expanded_ = std::move(expanded);
      table_ =
          std::make_unique<TableDevice<Context>>(Context(roots_, kind_), expanded_->rows, kind_.slice_rows);
    }
    return table_->attach(info);
  }

  std::span<const SeriesSpec> series() const override {
    return table_ ? table_->series() : std::span<const SeriesSpec>();
  }

  std::span<const std::size_t> own_counters() const override {
    return table_ ? table_->own_counters() : std::span<const std::size_t>();
  }

  void resume(std::size_t slot, double total) noexcept override {
    if (table_) table_->resume(slot, total);
  }

  void release() noexcept override {
    if (table_) table_->release();
  }

  PassOutcome sample(const Pass& pass, SampleSink& sink) noexcept override {
    return table_ ? table_->sample(pass, sink) : PassOutcome::gone;
  }

  bool has_more(Nanoseconds now) noexcept override { return table_ && table_->has_more(now); }

 private:
  const Kind kind_;
  const Roots roots_;
  std::unique_ptr<Expanded> expanded_;  // its rows are table_'s
  std::unique_ptr<TableDevice<Context>> table_;
};

}  // namespace

std::unique_ptr<Device> make_device(const Kind& kind, const Roots& roots,
                                    std::unique_ptr<Attached> attached) {
  if (std::ranges::any_of(kind.rows, is_for_each)) return std::make_unique<EachSensorDevice>(kind, roots);
  const bool lists_processes = attached || (kind.scans != Scans::never && roots.users);
  Context context(roots, kind, std::move(attached));
  if (lists_processes) {
    return std::make_unique<ListingDevice<Context>>(std::move(context), kind.rows, kind.slice_rows);
  }
  return std::make_unique<TableDevice<Context>>(std::move(context), kind.rows, kind.slice_rows);
}

}  // namespace gpumeter::files
