#include "collectors/files/context.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "collectors/files/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::files {
namespace {

constexpr std::uint64_t kForGood = std::numeric_limits<std::uint64_t>::max();

}  // namespace

std::optional<int> FileCache::open_constant(const std::string& path) {
  const std::optional<int> handle = open(path);
  if (handle) entries_[static_cast<std::size_t>(*handle)].kept.is_constant = true;
  return handle;
}

Sample FileCache::read(int handle) noexcept {
  KeptInteger& kept = entries_[static_cast<std::size_t>(handle)].kept;
  if (kept.read_in == pass_ || kept.read_in == kForGood) return kept.sample;
  Entry& read = entry(handle);
  kept.sample = read.file.read_integer();
  read.is_unanswered = kept.sample.status != ReadStatus::ok;
  kept.read_in = kept.is_constant && !read.is_unanswered ? kForGood : pass_;
  if (kept.sample.status == ReadStatus::gone) suspect_ = handle;
  return kept.sample;
}

bool FileCache::answers_now() noexcept {
  return std::ranges::any_of(unanswered_, [&](int handle) { return read(handle).status == ReadStatus::ok; });
}

bool FileCache::lost() noexcept {
  if (!suspect_) return false;
  // A driver may always return ENODEV for some sensor; its path, opened again, then returns the same error.
  const int suspect = *std::exchange(suspect_, std::nullopt);
  const sysfs::File again(entries_[static_cast<std::size_t>(suspect)].path);
  return again.status() != ReadStatus::ok || again.read_integer().status != ReadStatus::gone;
}

TextCache::Text TextCache::read(int handle) noexcept {
  if (last_ == handle) return text_;
  Entry& read = entry(handle);
  const sysfs::Bytes bytes = read.file.read(buffer_);
  text_ = {sysfs::trimmed({buffer_.data(), bytes.size}), bytes.status};
  read.is_unanswered = text_.status != ReadStatus::ok || text_.text.empty();
  last_ = handle;
  return text_;
}

bool TextCache::answers_now() noexcept {
  return std::ranges::any_of(unanswered_, [&](int handle) {
    const Text text = read(handle);
    return text.status == ReadStatus::ok && !text.text.empty();
  });
}

namespace {

/// The digits at the end of a folder's name: "neuron_core12" -> "12".
std::string number_of(const std::string& folder) {
  return folder.substr(folder.find_last_not_of("0123456789") + 1);
}

}  // namespace

Result<Done> Context::open(const DeviceInfo& info) {
  std::error_code error;
  if (!std::filesystem::is_directory(info.source, error)) return Error(info.source + ": does not exist");
  *this = Context(std::move(roots_), kind_, std::move(attached_));
  info_ = info;
  power_ = RuntimePower(info.source);
  const PowerState state = power_.read().value_or(PowerState());
  awake_ = kind_.sleep == Sleep::ignored || !state.suspended;
  is_bound_asleep_ = !awake_;
  paths_ = Paths(roots_.sysfs, info.source, kind_.paths, awake_);
  if (kind_.sleep == Sleep::allowed) screens_ = Screens(info.source);
  host_memory_ = HostMemoryFile(roots_.procfs);
  if (kind_.scans != Scans::never) {
    clients_ = fdinfo::DeviceWatch(roots_.users, client_device(), kind_.scans == Scans::always || awake_);
  }
  find_slices();
  if (attached_) attached_->open(*this, info_, state);
  return Done{};
}

void Context::close() noexcept {
  if (attached_) attached_->close();
  *this = Context(std::move(roots_), kind_, std::move(attached_));
}

Readiness Context::begin_pass(const Pass& pass) noexcept {
  now_ = pass.now;
  is_after_gap_ = pass.elapsed == Nanoseconds{0};
  const bool lost = numbers_.lost();
  numbers_.begin_pass();
  texts_.begin_pass();
  host_memory_.begin_pass();
  const std::optional<PowerState> state = power_.read();
  if (lost || !state) return Readiness::gone;
  awake_ = kind_.sleep == Sleep::ignored || !state->suspended;
  client_counters_.begin_pass(clients_, pass.now);
  if (attached_) attached_->begin_pass(*state);
  is_read_ = may_read(pass, *state);
  if (kind_.scans != Scans::always) clients_.turn_on(may_scan(*state));
  return is_read_ ? Readiness::awake : Readiness::asleep;
}

// Only the fast tier checks whether the device is in use; the other tiers use its result.
bool Context::may_read(const Pass& pass, const PowerState& state) noexcept {
  if (kind_.sleep != Sleep::allowed) return awake_;
  const auto is_used = [this] { return (attached_ && attached_->is_used()) || screens_.any_on(); };
  const auto is_busy = [this] { return attached_ && attached_->is_busy(); };
  return sleep_.may_read(pass.now, state, pass.tier == Tier::fast, is_used, is_busy);
}

bool Context::may_scan(const PowerState& state) const noexcept {
  if (kind_.scans == Scans::never || !awake_) return false;
  const bool keeps_awake = kind_.scans == Scans::while_read && state.delay >= fdinfo::DeviceWatch::kEvery;
  return is_read_ || !keeps_awake;
}

void Context::end_binding() {
  const bool lacks_numbers = numbers_.note_unanswered();
  const bool lacks_texts = texts_.note_unanswered();
  is_unread_ = attached_ && attached_->is_unread();
  is_provisional_ =
      is_bound_asleep_ || lacks_numbers || lacks_texts || is_unread_ || !paths_.unreadable().empty();
  look_again_at_ = {};
}

// Many devices have a file that never returns a value, so the look must be cheap: it reads only what was
// missing.
bool Context::has_more(Nanoseconds now) noexcept try {
  constexpr auto kLookEvery = std::chrono::seconds(4);
  if (!awake_) return false;
  if (attached_ && attached_->has_changed()) return true;
  if (!is_provisional_) return false;
  if (is_bound_asleep_) return true;
  if (look_again_at_ == Nanoseconds{0}) look_again_at_ = now + kLookEvery;
  if (now < look_again_at_) return false;
  look_again_at_ = now + kLookEvery;
  if (is_unread_ && !attached_->is_unread()) return true;
  if (numbers_.answers_now() || texts_.answers_now()) return true;
  return std::ranges::any_of(paths_.unreadable(),
                             [](const std::string& path) { return sysfs::probe(path) == ReadStatus::ok; });
} catch (const std::exception&) {  // out of memory
  return false;
}

void Context::find_slices() {
  if (kind_.slices.empty()) return;
  for (std::string& folder : paths_.folders(kind_.slices)) {
    const std::string number = number_of(folder);
    if (number.empty()) continue;
    slices_.push_back({std::string(kind_.slice_kind) + ":" + number, {}, folder});
    slice_folders_.push_back(std::move(folder));
  }
}

void Context::turn_to(std::size_t slice) noexcept {
  slice_ = slice;
  paths_.turn_to(slice < slice_folders_.size() ? &slice_folders_[slice] : nullptr);
}

std::vector<SeriesSpec> Context::info_series() const {
  return kind_.info_series != nullptr ? kind_.info_series(info_) : std::vector<SeriesSpec>();
}

ReadStatus Context::processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
  const bool is_open = attached_ && !info_.source.empty();
  const ReadStatus own = is_open ? attached_->processes(pass, out) : ReadStatus::unsupported;
  const std::optional<double> used = is_open ? attached_->memory_in_use() : std::nullopt;
  const ReadStatus clients = client_lists_.read(clients_, pass.now, used, out);
  if (own == ReadStatus::ok || clients == ReadStatus::ok) return ReadStatus::ok;
  return own == ReadStatus::unsupported ? clients : own;
}

std::optional<int> Context::number_file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  return path ? numbers_.open(*path) : std::nullopt;
}

std::optional<int> Context::constant_file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  return path ? numbers_.open_constant(*path) : std::nullopt;
}

std::optional<int> Context::text_file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  return path ? texts_.open(*path) : std::nullopt;
}

std::string Context::client_device() const {
  const std::string own = info_.pci_address.empty() ? info_.uuid : info_.pci_address;
  if (kind_.client_driver.empty()) return own;
  for (const std::string& card : sysfs::list(roots_.sysfs + "/class/drm")) {
    const std::string device = roots_.sysfs + "/class/drm/" + card + "/device";
    if (matches(kind_.client_driver, sysfs::link_name(device + "/driver"))) return sysfs::link_name(device);
  }
  return own;
}

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
class EachSensorDevice final : public TableDevice<Context> {
 public:
  EachSensorDevice(const Kind& kind, const Roots& roots)
      : TableDevice(Context(roots, kind), {}, kind.slice_rows), kind_(kind), sysfs_(roots.sysfs) {}

  Result<Done> attach(const DeviceInfo& info) override {
    auto expanded = std::make_unique<Expanded>();
    expand(kind_.rows, Paths(sysfs_, info.source, kind_.paths), *expanded);
    if (!same_rows(expanded->rows, expanded_->rows)) {
      use(expanded->rows);
      expanded_ = std::move(expanded);
    }
    return TableDevice::attach(info);
  }

 private:
  const Kind kind_;
  const std::string sysfs_;
  std::unique_ptr<Expanded> expanded_ = std::make_unique<Expanded>();  // its rows are the device's
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
