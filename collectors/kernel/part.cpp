#include "collectors/kernel/part.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/records.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/event_ledger.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/api/self_catalog.hpp"
#include "collectors/events/line.hpp"
#include "collectors/kernel/journal.hpp"
#include "collectors/kernel/kmsg.hpp"
#include "collectors/kernel/repetition.hpp"
#include "collectors/sources/pci.hpp"
#include "collectors/sources/sysfs.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::kernel {
namespace {

using events::Action;
using events::Event;
using events::Kind;
using events::parse;
using events::Severity;
using events::Step;
using events::Verdict;
using events::verdict_of;
using options::checked;
using options::Complaint;
using options::Option;
using options::option;
using options::Reload;

constexpr std::string_view kAutomatic = "auto";
constexpr std::string_view kOff = "off";
constexpr std::string_view kKmsg = "/dev/kmsg";

Complaint check_log(const std::string& log) {
  if (log == kAutomatic || log == kOff || log.starts_with('/')) return std::nullopt;
  return "must be auto, off or an absolute path, not \"" + log + '"';
}

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&Settings::log>("log", Reload::applies, "The kernel's log, for XIDs with their text and other events of GPUs. `auto`: /dev/kmsg, if gpumeter may read it (docs/secure.md); `off`; or the path of a file with records as /dev/kmsg has them.", checked<check_log>),
};
// clang-format on

constexpr Nanoseconds kEvery = std::chrono::seconds(1);
constexpr Nanoseconds kTryAgain = std::chrono::minutes(1);
// A turn takes a few milliseconds at most, and a storm goes on in the next one: 40 000 lines a second.
constexpr int kMostRecords = 2000;
constexpr Nanoseconds kNextBite = std::chrono::milliseconds(50);
// An event that is older when it is first read is shown and not counted: as the growth of a counter it would
// be a finding of now (exporter/health keeps XIDs for an hour).
constexpr Nanoseconds kOldest = std::chrono::hours(1);
constexpr std::uint64_t kFallenOff = 79;
constexpr Nanoseconds kSameIncident = std::chrono::minutes(1);
// A reset that has not succeeded by then has failed.
constexpr Nanoseconds kResetTakes = std::chrono::minutes(1);
constexpr std::string_view kRepeated = "repeated_xid";
// The daemon's own log has one line a minute for each device and kind of event.
constexpr Nanoseconds kLoggedAgain = std::chrono::minutes(1);
// Of the boot before this one. The last of them tell why it ended.
constexpr std::size_t kMostJournalLines = 5000;
// Devices and kinds of events. The kernel writes the lines, so a machine has a few dozen.
constexpr std::size_t kMostKinds = 512;

/// "xid 79", "ring_timeout"
std::string words_of(const EventRecord& event) {
  return event.code ? event.kind + " " + std::to_string(*event.code) : event.kind;
}

void describe_by(const Verdict& verdict, EventRecord& event) {
  event.meaning = verdict.meaning;
  if (!verdict.hint.empty()) event.meaning.append("; ").append(verdict.hint);
  event.severity = to_string(verdict.severity);
  event.action = to_string(verdict.action);
}

EventRecord record_of(const Event& event) {
  EventRecord record{.source = std::string(kKernelLog),
                     .vendor = std::string(event.vendor),
                     .pci_address = event.pci,
                     .kind = std::string(to_string(event.kind)),
                     .code = event.code,
                     .subcode = event.subcode,
                     .link = event.link,
                     .instance = event.gpu_instance,
                     .pid = event.pid,
                     .text = event.text};
  describe_by(verdict_of(event), record);
  return record;
}

/// The value of the label `event`; empty: XIDs have a family of their own.
std::string_view label_of(const Event& event) {
  if (event.message != nullptr) return events::event_of(*event.message);
  return event.kind == Kind::xid ? std::string_view() : to_string(event.kind);
}

/// True if the event may concern a GPU that does not have its address.
bool is_of_neighbour(const EventRecord& event) {
  return event.kind == to_string(Kind::aer) || event.kind == to_string(Kind::link_flap) ||
         event.kind == to_string(Kind::nic_error);
}

/// The bridges and the devices near the GPUs, by the folders of the bus.
class Bus {
 public:
  explicit Bus(const std::string& sysfs_root) : folder_(sysfs_root + "/bus/pci/devices/") {}

  bool is_above(const std::string& bridge, const std::string& gpu) {
    return path_of(gpu).find("/" + bridge + "/") != std::string::npos;
  }
  bool share_root(const std::string& one, const std::string& other) {
    const std::string root = root_of(path_of(one));
    return !root.empty() && root == root_of(path_of(other));
  }

 private:
  const std::string& path_of(const std::string& address) {
    if (paths_.size() > kMostKinds) paths_.clear();
    const auto [known, is_new] = paths_.try_emplace(address);
    if (is_new) {
      const auto function = pci::read_function(folder_ + address);
      known->second = function ? function->path : "";
    }
    return known->second;
  }
  /// "/sys/devices/pci0000:16" of "/sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0".
  static std::string root_of(const std::string& path) {
    const std::size_t root = path.find("/pci");
    return root == std::string::npos ? "" : path.substr(0, path.find('/', root + 1));
  }

  const std::string folder_;
  std::map<std::string, std::string> paths_;
};

class Kernel final : public Part, public Keeps {
 public:
  explicit Kernel(const PartContext& context)
      : settings_(context.settings_of<Settings>()),
        procfs_(context.paths.procfs),
        machine_(context.machine),
        ledger_(*context.machine.events),
        clock_(context.clock),
        log_(context.log),
        bus_(context.paths.sysfs),
        series_(context.store.attach({}, context.name)) {}
  ~Kernel() override { ledger_.set_log_read(false); }

  Nanoseconds turn(Nanoseconds now) override {
    if (settings_.log == kAutomatic && !std::exchange(is_journal_shown_, true)) show_previous_boot();
    if (settings_.log != kOff && !kernel_log_ && now >= try_at_) open(now);
    const bool has_more = kernel_log_ && read(now);
    if (!has_more) {
      note_unfinished_resets(now);
      note_repeated_xids(now);
    }
    publish(now);
    return has_more ? kNextBite : kEvery;
  }

  std::string save() const override {
    RecordWriter out;
    if (last_) out.begin("log")(path_, *last_, lost());
    return out.take();
  }

  Result<Done> resume(std::string_view section, bool is_of_this_boot) override {
    RecordReader in(section);
    while (in.next()) {
      if (in.kind() != "log") continue;
      in(path_);
      const auto last = in.take<std::uint64_t>();
      if (is_of_this_boot) last_ = last;
      in(lost_before_);
    }
    return in.failed() ? Result<Done>(Error("line " + std::to_string(in.line()))) : Done{};
  }

 private:
  std::uint64_t lost() const { return lost_before_ + (kernel_log_ ? kernel_log_->lost() : 0); }

  void open(Nanoseconds now) {
    try_at_ = now + kTryAgain;
    const std::string path(settings_.log == kAutomatic ? kKmsg : settings_.log);
    Result<KernelLog> opened = KernelLog::open(path);
    if (opened) {
      kernel_log_.emplace(*std::move(opened));
      if (std::exchange(path_, path) != path) last_.reset();
      if (last_) kernel_log_->expect_after(*last_);
      is_backlog_ = true;
      return ledger_.set_log_read(true);
    }
    if (std::exchange(is_refusal_logged_, true)) return;
    log_.info("the kernel's log is not read, so events are those that drivers report",
              {{"error", opened.error().message()},
               {"remedy", "kernel-log.conf of docs/secure.md permits it; kernel.log: off ends this line"}});
  }

  void show_previous_boot() {
    std::string boot = sysfs::read_text(procfs_ + "/sys/kernel/random/boot_id");
    std::erase_if(boot, [](char c) { return c == '-' || c == '\n'; });
    for (const JournalLine& line : lines_of_previous_boot({}, boot, kMostJournalLines)) {
      const std::optional<Event> parsed = parse(line.text);
      if (!parsed) continue;
      EventRecord event = record_of(*parsed);
      event.source = kJournal;
      event.time = line.time;
      for (EventRecord& each : placed(std::move(event))) ledger_.show(std::move(each));
    }
  }

  /// Returns true if the log may have more.
  bool read(Nanoseconds now) {
    for (int i = 0; i < kMostRecords; ++i) {
      const std::optional<KernelRecord> record = kernel_log_->next();
      if (!record) {
        is_backlog_ = false;
        return false;
      }
      take(*record, now);
    }
    return true;
  }

  // The records that were lost may have had the success of a reset.
  void note_unfinished_resets(Nanoseconds now) {
    if (kernel_log_ && std::exchange(lost_seen_, kernel_log_->lost()) != kernel_log_->lost()) begun_.clear();
    for (auto it = begun_.begin(); it != begun_.end();) {
      auto& [since, event] = it->second;
      if (now - since < kResetTakes) {
        ++it;
        continue;
      }
      event.time = clock_.realtime();
      event.text += ": no success within 60 s";
      event.meaning = "the reset of the GPU has failed";
      event.severity = to_string(Severity::failed);
      event.action = to_string(Action::reboot);
      note(std::move(event), "reset_failed", false, now);
      it = begun_.erase(it);
    }
  }

  void note_repeated_xids(Nanoseconds now) {
    for (const Repetition::Found& found : repetition_.found(clock_.realtime())) {
      note(
          {.time = clock_.realtime(),
           .source = std::string(kKernelLog),
           .vendor = "nvidia",
           .pci_address = found.pci_address,
           .kind = std::string(kRepeated),
           .code = found.code,
           .text = found.text,
           .meaning = "an error that comes back at one place points at the hardware; run the field diagnosis",
           .severity = std::string(to_string(Severity::degraded)),
           .action = std::string(to_string(Action::drain))},
          kRepeated, false, now);
    }
  }

  void take(const KernelRecord& record, Nanoseconds now) {
    const bool is_known = last_ && record.sequence <= *last_;
    if (!is_known) last_ = record.sequence;
    if (!record.is_of_kernel()) return;
    const std::optional<Event> parsed = parse(record.text);
    if (!parsed) return;
    EventRecord event = record_of(*parsed);
    if (event.pci_address.empty()) event.pci_address = record.pci_address;
    const Nanoseconds age = std::max(now - record.since_boot, Nanoseconds{0});
    event.is_time_estimated = is_backlog_;
    event.time = clock_.realtime() - (is_backlog_ ? age : Nanoseconds{0});
    const bool is_old = is_known || age > kOldest;
    repetition_.take(*parsed, event.time, machine_.known_devices.get()->size(), is_old);
    if (parsed->message != nullptr && parsed->message->step == Step::begins)
      return note_begin(std::move(event), is_old, now);
    const std::string_view label = label_of(*parsed);
    if (label.starts_with("reset")) begun_.erase(event.pci_address);
    for (EventRecord& each : placed(std::move(event))) note(std::move(each), label, is_old, now);
  }

  /// The reset counts when it succeeds or fails.
  void note_begin(EventRecord event, bool is_old, Nanoseconds now) {
    if (is_old) return ledger_.show(std::move(event));
    ledger_.note(event);
    report(event, now);
    if (begun_.size() < kMostKinds) begun_.try_emplace(event.pci_address, now, event);
  }

  /// The event for each GPU that it concerns: the device itself, or those below a bridge. Empty: it concerns
  /// none. An event of a device that is no GPU here keeps its address.
  std::vector<EventRecord> placed(EventRecord event) {
    const auto devices = machine_.known_devices.get();
    const auto is_it = [&](const DeviceIdentity& each) { return each.info.pci_address == event.pci_address; };
    if (std::ranges::any_of(*devices, is_it)) return {std::move(event)};
    if (!is_of_neighbour(event)) return {std::move(event)};
    const bool is_of_bridge = event.kind == to_string(Kind::aer);
    std::vector<EventRecord> found;
    for (const DeviceIdentity& each : *devices) {
      const std::string& gpu = each.info.pci_address;
      if (!is_of_bridge && bus_.share_root(event.pci_address, gpu)) return {std::move(event)};
      if (!is_of_bridge || !bus_.is_above(event.pci_address, gpu)) continue;
      found.push_back(event);
      found.back().pci_address = gpu;
      found.back().text = "bridge " + event.pci_address + ": " + event.text;
    }
    return found;
  }

  /// `label`: see label_of.
  void note(EventRecord event, std::string_view label, bool is_old, Nanoseconds now) {
    if (is_old || follows_from_another(event, label)) return ledger_.show(std::move(event));
    if (!ledger_.note(event)) return;
    if (!label.empty()) ledger_.count(event.pci_address, label);
    report(event, now);
  }

  /// Further lines of one incident: a GPU that has fallen off the bus has an XID 79 and a line without a
  /// code, and a reset that succeeds or fails has several lines.
  bool follows_from_another(const EventRecord& event, std::string_view label) {
    const bool is_fall_of_xid = label.empty() && event.code == kFallenOff;
    if (is_fall_of_xid) label = to_string(Kind::off_bus);
    if (label != to_string(Kind::off_bus) && event.kind != to_string(Kind::reset)) return false;
    if (incidents_.size() > kMostKinds) incidents_.clear();
    const auto [first, is_new] = incidents_.try_emplace({event.pci_address, std::string(label)}, event.time);
    if (is_new || event.time - first->second > kSameIncident) {
      first->second = event.time;
      return false;
    }
    return !is_fall_of_xid;
  }

  void report(const EventRecord& event, Nanoseconds now) {
    if (reported_.size() > kMostKinds) reported_.clear();
    const auto [last, is_new] = reported_.try_emplace(event.pci_address + "/" + words_of(event), now);
    if (!is_new && now - last->second < kLoggedAgain) return;
    last->second = now;
    log_.warn("the kernel reports " + words_of(event),
              {{"pci_address", event.pci_address}, {"text", event.text}, {"action", event.action}});
  }

  void publish(Nanoseconds now) {
    if (settings_.log != kOff) {
      series_.add(self_catalog::kernel_log_readable, {}, kernel_log_ ? 1 : 0);
      series_.add(self_catalog::kernel_log_lost, {}, static_cast<double>(lost()));
    }
    const EventLedger::Counts counts = ledger_.counts();
    for (const DeviceIdentity& device : *machine_.known_devices.get()) {
      const Labels labels(device.info, device.index, device.name, machine_.device_labels);
      const std::string& address = device.info.pci_address;
      const auto first = counts.lower_bound({address, ""});
      for (auto it = first; it != counts.end() && it->first.first == address; ++it) {
        series_.add(catalog::events, labels.with({{"event", it->first.second}}),
                    static_cast<double>(it->second));
      }
    }
    series_.commit(now);
  }

  const Settings settings_;
  const std::string procfs_;
  const Machine& machine_;
  EventLedger& ledger_;
  const Clock& clock_;
  Log& log_;
  Bus bus_;
  SeriesList series_;
  std::optional<KernelLog> kernel_log_;
  Nanoseconds try_at_{};
  bool is_refusal_logged_ = false;
  bool is_journal_shown_ = false;
  bool is_backlog_ = true;             ///< the records were written before the log was opened
  std::string path_;                   ///< of the log that was read last
  std::optional<std::uint64_t> last_;  ///< sequence number of the last record that was taken in this boot
  std::uint64_t lost_before_ = 0;      ///< of earlier processes
  /// Resets without a success yet, by device, with the time at which they were read.
  std::map<std::string, std::pair<Nanoseconds, EventRecord>> begun_;
  std::uint64_t lost_seen_ = 0;  ///< lost() of the log at the last look
  Repetition repetition_;
  std::map<std::pair<std::string, std::string>, Nanoseconds> incidents_;  ///< their first lines, since 1970
  std::map<std::string, Nanoseconds> reported_;  ///< the last line of the daemon's log
};

std::shared_ptr<Part> open(const PartContext& context) {
  return context.machine.events ? std::make_shared<Kernel>(context) : nullptr;
}

constexpr const MetricDescriptor* kFamilies[] = {&catalog::events, &self_catalog::kernel_log_readable,
                                                 &self_catalog::kernel_log_lost};

}  // namespace

void describe(EventRecord& event) {
  Event about;
  const auto kind = events::kKindNames.find(event.kind);
  if (!kind) return;
  about.kind = *kind;
  if (event.code) about.code = static_cast<unsigned>(*event.code);
  describe_by(verdict_of(about), event);
}

constinit const options::Section kSection = options::section("kernel", kOptions);

const PartEntry kPart = {.name = "kernel",
                         .options = &kSection,
                         .families = kFamilies,
                         .section = "kernel",
                         .reads_store = true,  // it joins the first lines to devices
                         .open = open};

}  // namespace gpumeter::kernel
