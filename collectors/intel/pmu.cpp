#include "collectors/intel/pmu.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/descriptor.hpp"
#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::intel::pmu {

struct EngineMeter::Pmu {
  std::uint32_t type = 0;
  int cpu = 0;
  Opener& opener;
};

namespace {

class KernelCounter final : public Counter {
 public:
  explicit KernelCounter(Descriptor file) : file_(std::move(file)) {}

  ReadStatus read(std::uint64_t& count) noexcept override {
    ssize_t size = -1;
    do {
      size = ::read(file_.number(), &count, sizeof(count));
    } while (size < 0 && errno == EINTR);
    if (size < 0) return sysfs::status_of(errno);
    return size == sizeof(count) ? ReadStatus::ok : ReadStatus::gone;  // 0 bytes: the PMU was removed
  }

 private:
  Descriptor file_;
};

/// The drivers' classes, by the short name of an engine and by the number in an event (i915_drm.h,
/// I915_ENGINE_CLASS_*; xe_drm.h, DRM_XE_ENGINE_CLASS_*). A video engine decodes and encodes.
struct ClassName {
  std::string_view name;
  std::uint64_t number;
  EngineClass engine_class;
};
constexpr ClassName kClasses[] = {{"rcs", 0, EngineClass::graphics},
                                  {"bcs", 1, EngineClass::copy},
                                  {"vcs", 2, EngineClass::video},
                                  {"vecs", 3, EngineClass::video_enhance},
                                  {"ccs", 4, EngineClass::compute}};

const ClassName* class_of(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kClasses, name, &ClassName::name);
  return found == std::end(kClasses) ? nullptr : found;
}

// The most engines of one class on any chip: 9 copy engines of Ponte Vecchio.
constexpr std::uint64_t kMostInstances = 16;

/// The terms of xe's events, as the folder `format` places them.
class XeFormat {
 public:
  explicit XeFormat(const std::string& folder) {
    for (std::size_t i = 0; i < kTerms.size(); ++i) {
      fields_[i] = parse_field(sysfs::read_text(folder + "/format/" + std::string(kTerms[i])));
    }
  }

  /// nullopt if the kernel lacks a term, or a value does not fit.
  std::optional<std::uint64_t> config(const std::array<std::uint64_t, 4>& values) const noexcept {
    std::uint64_t config = 0;
    for (std::size_t i = 0; i < kTerms.size(); ++i) {
      const auto placed = fields_[i] ? fields_[i]->place(values[i]) : std::nullopt;
      if (!placed) return std::nullopt;
      config |= *placed;
    }
    return config;
  }

 private:
  static constexpr std::array<std::string_view, 4> kTerms = {"event", "engine_class", "engine_instance",
                                                             "gt"};
  std::array<std::optional<Field>, kTerms.size()> fields_;
};

/// The number of an event that the kernel lists; it lists only those that work on the card.
std::optional<std::uint64_t> listed_event(const std::string& folder, const char* name) {
  return term_of(sysfs::read_text(folder + "/events/" + name), "event");
}

constexpr unsigned kLastBit = 63;

std::optional<Field::Bits> parse_bits(std::string_view text) noexcept {
  const auto first = take_number<unsigned>(text);
  if (!first || *first > kLastBit) return std::nullopt;
  if (text.empty()) return Field::Bits{*first, *first};
  if (!text.starts_with('-')) return std::nullopt;
  const auto last = parse_number<unsigned>(text.substr(1));
  if (!last || *last < *first || *last > kLastBit) return std::nullopt;
  return Field::Bits{*first, *last};
}

/// Decimal, or hexadecimal after "0x".
std::optional<std::uint64_t> parse_value(std::string_view text) noexcept {
  const bool is_hexadecimal = text.starts_with("0x");
  if (is_hexadecimal) text.remove_prefix(2);
  return parse_number<std::uint64_t>(text, is_hexadecimal ? 16 : 10);
}

}  // namespace

// The drivers refuse a sampling period and every processor outside their cpumask.
Opened KernelOpener::open(const Event& event) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = event.type;
  attributes.config = event.config;
  constexpr int kEveryProcess = -1;
  constexpr int kNoGroup = -1;
  const long number = ::syscall(SYS_perf_event_open, &attributes, kEveryProcess, event.cpu, kNoGroup,
                                static_cast<unsigned long>(PERF_FLAG_FD_CLOEXEC));
  if (number < 0) return sysfs::status_of(errno);
  return std::make_unique<KernelCounter>(Descriptor(static_cast<int>(number)));
}

ReadStatus permission(Opener& opener) {
  const Opened opened = opener.open({PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 0});
  const ReadStatus* const refused = std::get_if<ReadStatus>(&opened);
  return refused == nullptr ? ReadStatus::ok : *refused;
}

std::string denial_note() {
  return "Intel GPUs: without CAP_PERFMON the kernel refuses the counters of their engines and hides how "
         "much "
         "memory is used. gpumeter then has the busy time of the processes that it may read in "
         "/proc/PID/fdinfo, of its own user only without process.conf, and may have no used memory: copy "
         "pmu.conf from /usr/share/doc/gpumeter/examples/systemd to /etc/systemd/system/gpumeter.service.d";
}

std::string find_folder(const std::string& sysfs_root, std::string_view driver,
                        std::string_view pci_address) {
  std::string address(pci_address);
  std::ranges::replace(address, ':', '_');
  const std::string all = sysfs_root + "/bus/event_source/devices/";
  std::string own = all + std::string(driver) + "_" + address;
  if (sysfs::probe(own) == ReadStatus::ok) return own;
  const bool is_in_processor = pci_address.ends_with(":00:02.0");
  std::string first = all + std::string(driver);
  return driver == "i915" && is_in_processor && sysfs::probe(first) == ReadStatus::ok ? first : "";
}

EngineMeter::EngineMeter(const std::string& folder, std::string_view driver, const std::vector<Gt>& gts,
                         Opener& opener) {
  const auto type = sysfs::read_integer(folder + "/type");
  if (!type) return;
  const Pmu pmu{static_cast<std::uint32_t>(*type),
                first_cpu(sysfs::read_text(folder + "/cpumask")).value_or(0), opener};
  if (driver == "xe") {
    open_xe(folder, pmu, gts);
  } else {
    open_i915(folder, pmu);
  }
}

// An event's file has "config=0x0".
void EngineMeter::open_i915(const std::string& folder, const Pmu& pmu) {
  for (const std::string& name : sysfs::list(folder + "/events")) {
    const std::optional<EngineName> engine = parse_busy_event(name);
    const ClassName* const known = engine ? class_of(engine->engine_class) : nullptr;
    const auto config =
        known ? term_of(sysfs::read_text(folder + "/events/" + name), "config") : std::nullopt;
    if (!config) continue;
    std::unique_ptr<Counter> active = open(pmu, *config);
    if (active) engines_.push_back({known->engine_class, std::move(active), nullptr});
  }
}

// The kernel does not list the engines, but refuses the event of one that is missing.
void EngineMeter::open_xe(const std::string& folder, const Pmu& pmu, const std::vector<Gt>& gts) {
  const auto active_event = listed_event(folder, "engine-active-ticks");
  const auto total_event = listed_event(folder, "engine-total-ticks");
  if (!active_event || !total_event) return;
  const XeFormat format(folder);
  const auto counter = [&](std::uint64_t event, const ClassName& of, std::uint64_t instance, const Gt& gt) {
    const auto config = format.config({event, of.number, instance, static_cast<std::uint64_t>(gt.index)});
    return config ? open(pmu, *config) : nullptr;
  };
  for (const Gt& gt : gts) {
    for (const std::string& name : gt.engines) {
      const ClassName* const of = class_of(name);
      for (std::uint64_t i = 0; of != nullptr && i < kMostInstances; ++i) {
        std::unique_ptr<Counter> active = counter(*active_event, *of, i, gt);
        std::unique_ptr<Counter> total = active ? counter(*total_event, *of, i, gt) : nullptr;
        if (total) engines_.push_back({of->engine_class, std::move(active), std::move(total)});
      }
    }
  }
}

std::unique_ptr<Counter> EngineMeter::open(const Pmu& pmu, std::uint64_t config) {
  Opened opened = pmu.opener.open({pmu.type, config, pmu.cpu});
  if (const ReadStatus* const refused = std::get_if<ReadStatus>(&opened)) {
    is_denied_ = is_denied_ || *refused == ReadStatus::denied;
    return nullptr;
  }
  return std::get<std::unique_ptr<Counter>>(std::move(opened));
}

bool EngineMeter::has(EngineClass engine_class) const noexcept {
  return std::ranges::any_of(engines_,
                             [&](const Engine& engine) { return engine.engine_class == engine_class; });
}

const EngineTimes& EngineMeter::read(Nanoseconds now) noexcept {
  const double elapsed = is_started_ ? to_seconds(now - times_.at) : 0;
  std::array<double, kEngineClassCount> sums{};
  std::array<int, kEngineClassCount> counts{};
  double busiest = 0;
  times_.status = ReadStatus::ok;
  for (Engine& engine : engines_) {
    double busy = 0;
    const ReadStatus status = advance(engine, elapsed, busy);
    if (status != ReadStatus::ok) times_.status = status;
    const auto place = static_cast<std::size_t>(engine.engine_class);
    sums[place] += busy;
    ++counts[place];
    busiest = std::max(busiest, busy);
  }
  for (std::size_t i = 0; i < kEngineClassCount; ++i) {
    if (counts[i] > 0) times_.seconds[i] = times_.seconds[i].value_or(0) + sums[i] / counts[i];
  }
  times_.busiest += busiest;
  times_.at = now;
  is_started_ = true;
  return times_;
}

// An engine cannot be busy for longer than the time that has passed. i915 adds the time up to now for an
// engine that works, so two readings may differ by a little more.
ReadStatus EngineMeter::advance(Engine& engine, double elapsed, double& busy) noexcept {
  std::uint64_t active = 0;
  std::uint64_t total = 0;
  ReadStatus status = engine.active->read(active);
  if (status == ReadStatus::ok && engine.total) status = engine.total->read(total);
  if (status != ReadStatus::ok) return status;
  const auto grown = static_cast<double>(active >= engine.last_active ? active - engine.last_active : 0);
  const auto ticks = static_cast<double>(total >= engine.last_total ? total - engine.last_total : 0);
  if (!engine.total) busy = grown / 1e9;
  if (engine.total && ticks > 0) busy = grown / ticks * elapsed;
  busy = is_started_ ? std::clamp(busy, 0.0, elapsed) : 0;
  engine.last_active = active;
  engine.last_total = total;
  return status;
}

std::optional<std::uint64_t> Field::place(std::uint64_t value) const noexcept {
  std::uint64_t config = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned width = ranges[i].last - ranges[i].first + 1;
    const std::uint64_t mask = width > kLastBit ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
    config |= (value & mask) << ranges[i].first;
    value = width > kLastBit ? 0 : value >> width;
  }
  return value == 0 ? std::optional(config) : std::nullopt;
}

std::optional<Field> parse_field(std::string_view text) noexcept {
  text = trimmed(text);
  if (take_until(text, ':') != "config") return std::nullopt;
  Field field;
  while (!text.empty()) {
    const std::optional<Field::Bits> bits = parse_bits(take_until(text, ','));
    if (!bits || field.count == Field::kMost) return std::nullopt;
    field.ranges[field.count++] = *bits;
  }
  return field.count > 0 ? std::optional(field) : std::nullopt;
}

std::optional<std::uint64_t> term_of(std::string_view text, std::string_view term) noexcept {
  text = trimmed(text);
  while (!text.empty()) {
    std::string_view part = take_until(text, ',');
    if (take_until(part, '=') == term) return parse_value(part);
  }
  return std::nullopt;
}

std::optional<int> first_cpu(std::string_view text) noexcept {
  text = trimmed(text);
  const auto cpu = take_number<int>(text);
  const bool ends = text.empty() || text.starts_with('-') || text.starts_with(',');
  return cpu && *cpu >= 0 && ends ? cpu : std::nullopt;
}

std::optional<EngineName> parse_busy_event(std::string_view name) noexcept {
  constexpr std::string_view kBusy = "-busy";
  if (!name.ends_with(kBusy)) return std::nullopt;
  name.remove_suffix(kBusy.size());
  const std::size_t digits = name.find_first_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return std::nullopt;
  const auto instance = parse_number<unsigned>(name.substr(digits));
  if (!instance) return std::nullopt;
  return EngineName{name.substr(0, digits), *instance};
}

}  // namespace gpumeter::intel::pmu
