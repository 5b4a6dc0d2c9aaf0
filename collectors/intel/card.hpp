#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/files/context.hpp"
#include "collectors/intel/gts.hpp"
#include "collectors/intel/memory.hpp"
#include "collectors/intel/pmu.hpp"
#include "collectors/intel/ras.hpp"

namespace gpumeter::intel {

/// What a card is read from in addition to its files. Tests replace each part.
struct Environment {
  files::Roots roots;
  /// null: no events are opened, because the tree is not the machine's own.
  std::shared_ptr<pmu::Opener> pmu = nullptr;
  /// Returns the regions of the memory behind a node; empty: nodes are not opened.
  std::function<memory::Regions(const std::string& node, const std::string& driver)> query_memory = nullptr;
  bool may_see_use = true;  ///< the drivers tell how much of the memory is used
  /// Returns the error counts of a card; empty: they are not asked for.
  std::function<ras::Counts(const std::string& pci_address)> read_errors = nullptr;
};

/// The machine's own, if the root of sysfs is "/sys".
Environment environment_of(files::Roots roots);

/// What of these devices cannot be read without CAP_PERFMON.
std::vector<DeniedValues> denied_values(const Environment& environment,
                                        const std::vector<DeviceInfo>& devices);

/// One card's graphics tiles, events, memory regions and error counts. Lane thread.
class IntelCard final : public files::Attached {
 public:
  explicit IntelCard(Environment environment) : environment_(std::move(environment)) {}

  void open(files::Context& context, const DeviceInfo& info, const files::PowerState& state) override;
  void close() noexcept override;
  void begin_pass(const files::PowerState& state) noexcept override;
  /// A client's work has run.
  bool is_used() noexcept override;
  /// A clock runs.
  bool is_busy() noexcept override;
  /// The events may now be open and were not, or must be closed. Binding again opens them, or ends their
  /// rows.
  bool has_changed() noexcept override { return was_let_sleep_ != is_let_sleep_; }
  std::optional<double> memory_in_use() noexcept override;

  // For readers, at attach.

  const std::vector<Gt>& gts() const noexcept { return gts_; }
  /// True if the events of the engines are open; of those of a class, or of any (kBusiest).
  bool has_events(std::size_t place) const noexcept;
  bool has_memory() const noexcept { return !node_.empty(); }
  /// True if the kernel counts the card's errors and permits reading the counts.
  bool has_errors() const noexcept { return has_errors_; }
  ThrottleMask throttle_reasons() const noexcept { return throttle_.known(); }

  // For readers, each pass. The first call in a pass reads.

  const Throttle::Reading& throttle() noexcept { return throttle_.read(); }
  const pmu::EngineTimes& events() noexcept;
  const memory::Regions& memory() noexcept;
  const ras::Counts& errors() noexcept;

 private:
  bool must_let_sleep(const files::PowerState& state) const noexcept;

  Environment environment_;
  files::Context* context_ = nullptr;  // of the last open()
  DeviceInfo info_;
  std::vector<Gt> gts_;
  Throttle throttle_;
  std::vector<int> clocks_;  // act_freq of each GT
  std::string pmu_folder_;   // empty: it has no events, or they may not be opened here
  pmu::EngineMeter meter_;
  double clients_worked_ = 0;  // seconds, at the last is_used()
  std::string node_;           // empty: its memory cannot be asked for
  memory::Regions memory_;
  ras::Counts errors_;
  bool has_errors_ = false;
  bool is_meter_fresh_ = false;
  bool is_memory_fresh_ = false;
  bool are_errors_fresh_ = false;
  bool was_let_sleep_ = false;  // when it was opened, its events would have kept it awake
  bool is_let_sleep_ = false;   // the same at the last pass
};

/// An Intel GPU of that driver.
std::unique_ptr<Device> intel_device(const Environment& environment, std::string_view driver);

/// The table, for the docs.
std::span<const RowDoc> intel_row_docs();

}  // namespace gpumeter::intel
