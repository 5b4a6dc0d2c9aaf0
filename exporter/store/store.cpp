#include "exporter/store/store.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

namespace gpumeter {

// A new array of std::byte is aligned for doubles, and C++20 creates the objects stored in it implicitly. The
// casts below are therefore valid.
Frame::Frame(std::size_t slots)
    : memory_(new std::byte[slots * (sizeof(double) + sizeof(ReadStatus))]),
      values_(reinterpret_cast<double*>(memory_.get()), slots),
      statuses_(reinterpret_cast<ReadStatus*>(values_.data() + slots), slots) {
  std::ranges::fill(values_, 0.0);
  std::ranges::fill(statuses_, ReadStatus::unsupported);
}

void Frame::resize(std::size_t slots) {
  Frame resized(slots);
  const std::size_t kept = std::min(slots, size());
  std::ranges::copy(values_.first(kept), resized.values_.begin());
  std::ranges::copy(statuses_.first(kept), resized.statuses_.begin());
  *this = std::move(resized);
}

void Frame::copy_from(const Frame& other) noexcept {
  if (size() != other.size()) return;
  std::memcpy(memory_.get(), other.memory_.get(), values_.size_bytes() + statuses_.size_bytes());
}

void Family::invalidate() noexcept {
  version_ = 0;
  lines_.clear();
}

void Family::arrange(std::uint64_t version) {
  version_ = version;
  std::ranges::sort(lines_, {}, [](const Line& line) {
    return std::tuple(line.stored().labels.order(), line.source->age, line.stored().rank);
  });
  shadow_duplicates();
}

/// Prometheus rejects a whole page that contains the same series twice. The youngest source shows the series;
/// within a source, its first slot does.
void Family::shadow_duplicates() {
  std::vector<Line*> youngest_first;
  youngest_first.reserve(lines_.size());
  for (Line& line : lines_) youngest_first.push_back(&line);
  std::ranges::sort(youngest_first, {}, [](const Line* line) {
    const StoredSource::Slot& slot = line->stored();
    return std::tuple(slot.labels.id(), slot.part, ~line->source->age, slot.rank);
  });
  const Line* last = nullptr;
  for (Line* line : youngest_first) {
    const StoredSource::Slot& slot = line->stored();
    line->is_shadowed =
        last != nullptr && last->stored().labels == slot.labels && last->stored().part == slot.part;
    last = line;
  }
}

void Source::Detach::operator()(StoredSource* source) const noexcept { store->detach(*source); }

Source::Slot Source::add(const MetricDescriptor& family, Labels labels, SeriesPart part, double since,
                         bool is_lasting) {
  const Slot slot = free_ == kNone ? end_ : free_;
  // Grows by an eighth, but by at least kFewest slots: a GPU's processes are few compared with its series.
  constexpr std::size_t kFewest = 8;
  if (slot == frame_.size()) reserve(end_ + std::max(kFewest, end_ / 8));
  changes_.push_back({slot, &family, std::move(labels), part, since, is_lasting});
  if (slot == end_) {
    ++end_;
  } else {
    free_ = next_free_[slot];
  }
  return slot;
}

void Source::reserve(std::size_t slots) {
  if (slots <= frame_.size()) return;
  next_free_.resize(slots, kNone);
  frame_.resize(slots);
}

void Source::relabel(Slot slot, Labels labels) { changes_.push_back({slot, nullptr, std::move(labels)}); }

void Source::drop(Slot slot) noexcept {
  miss(slot, ReadStatus::unsupported);
  exemplars_.erase(slot);
  next_free_[slot] = std::exchange(free_, slot);
  has_drops_ = true;
}

void Source::clear() {
  frame_ = Frame();
  end_ = 0;
  free_ = kNone;
  next_free_.clear();
  changes_.clear();
  exemplars_.clear();
  has_drops_ = false;
  is_cleared_ = true;
}

void Source::commit(Nanoseconds now) {
  store().commit(*stored_, *this, now);
  if (!has_changes()) return;
  std::vector<Change>().swap(changes_);  // a device has hundreds of changes at its start and none afterwards
  has_drops_ = is_cleared_ = false;
}

void Source::hide() noexcept { store().hide(*stored_); }

namespace {

// Far more families than all pages of a machine describe; each takes about 500 bytes.
constexpr std::size_t kMostDeclared = 4000;

/// A page for Prometheus needs a text.
constexpr std::string_view kNoHelp = "Its source has no help text for it.";

constexpr std::string_view kSuffixes[] = {"_total", "_created", "_bucket", "_sum", "_count"};

/// The names of all families that may take this name.
std::vector<std::string> takers_of(const std::string& name) {
  std::vector<std::string> takers = {name, name + "_total"};
  for (const std::string_view suffix : kSuffixes) {
    if (!name.ends_with(suffix)) continue;
    takers.push_back(name.substr(0, name.size() - suffix.size()));
    takers.push_back(takers.back() + "_total");
  }
  return takers;
}

bool collide(const MetricDescriptor& a, const MetricDescriptor& b) {
  const std::vector<std::string> of_a = names_taken_by(a);
  const std::vector<std::string> of_b = names_taken_by(b);
  return std::ranges::find_first_of(of_a, of_b) != of_a.end();
}

bool is_same(const MetricDescriptor& known, const MetricDescriptor& wanted) {
  return known.name == wanted.name && known.type == wanted.type &&
         (wanted.help.empty() || known.help == wanted.help);
}

// Sources without such counters take no memory for them.
void set_since(StoredSource& source, std::size_t slot, double since) {
  if (slot >= source.since.size()) {
    if (since == 0) return;
    source.since.resize(slot + 1);
  }
  source.since[slot] = since;
}

}  // namespace

std::vector<std::string> names_taken_by(const MetricDescriptor& family) {
  std::vector<std::string> names = {std::string(family.name)};
  if (family.type == MetricType::counter && family.name.ends_with("_total")) {
    names.emplace_back(family.name.substr(0, family.name.size() - 6));
    names.push_back(names.back() + "_created");
  }
  if (family.type == MetricType::histogram || family.type == MetricType::summary) {
    for (const char* suffix : {"_bucket", "_sum", "_count", "_created"}) {
      names.push_back(names.front() + suffix);
    }
  }
  return names;
}

Source Store::attach(std::string_view collector, std::string_view part) {
  const MutexLock lock(mutex_);
  return attach(collector, part, ++ages_);
}

Source Store::attach_guest(std::string_view part) {
  const MutexLock lock(mutex_);
  return attach({}, part, ++guest_ages_ % kFirstAge);
}

Source Store::attach(std::string_view collector, std::string_view part, std::uint64_t age) {
  StoredSource source{std::string(collector), std::string(part), age};
  return {*this, sources_.emplace(age, std::move(source)).first->second};
}

void Store::reserve(std::span<const MetricDescriptor* const> families) {
  const MutexLock lock(mutex_);
  for (const MetricDescriptor* descriptor : families) family(*descriptor);
}

Result<const MetricDescriptor*> Store::declare(const MetricDescriptor& wanted) {
  const std::string name(wanted.name);
  if (!is_metric_name(name)) return Error("family " + name + ": Prometheus accepts no such name");
  const MutexLock lock(mutex_);
  if (const Family* const known = colliding_with(wanted)) {
    if (is_same(known->descriptor(), wanted)) {
      if (Declared* const own = declared(known->descriptor())) ++own->holders;
      return &known->descriptor();
    }
    return Error("family " + name + ": " + std::string(known->descriptor().name) +
                 " already exists with another type or help text; use the same ones, or another name");
  }
  if (declared_.size() >= kMostDeclared) {
    return Error("family " + name + ": " + std::to_string(kMostDeclared) +
                 " families are declared already, which is the limit");
  }
  Declared& own = declared_.emplace_back(name, std::string(wanted.help.empty() ? kNoHelp : wanted.help),
                                         std::string(wanted.unit), MetricDescriptor{});
  own.descriptor = {own.name, own.help, own.unit, wanted.type};
  return &family(own.descriptor).descriptor();
}

void Store::release(const MetricDescriptor& family) {
  const MutexLock lock(mutex_);
  Declared* const own = declared(family);
  if (own == nullptr || --own->holders > 0) return;
  const auto found = families_.find(family.name);
  arrange();
  if (!found->second.lines_.empty()) return;
  free_ids_.push_back(found->second.id());
  families_.erase(found);
  declared_.remove_if([own](const Declared& each) { return &each == own; });
}

Store::Declared* Store::declared(const MetricDescriptor& descriptor) noexcept {
  const auto is_it = [&](const Declared& each) { return &each.descriptor == &descriptor; };
  const auto found = std::ranges::find_if(declared_, is_it);
  return found == declared_.end() ? nullptr : &*found;
}

const Family* Store::colliding_with(const MetricDescriptor& wanted) const {
  for (const std::string& taken : names_taken_by(wanted)) {
    for (const std::string& name : takers_of(taken)) {
      const auto known = families_.find(name);
      if (known != families_.end() && collide(known->second.descriptor(), wanted)) return &known->second;
    }
  }
  return nullptr;
}

std::uint64_t Store::walk(const std::function<void(const Family&)>& visit) const {
  const MutexLock lock(mutex_);
  arrange();
  for (const auto& [name, family] : families_) visit(family);
  return generation();
}

// A mutex goes to the thread that runs, so that only a pause lets the waiting ones in. Meanwhile the family
// may be removed, so its name is copied.
void Store::walk_in_slices(const std::function<void(const Family&)>& visit) const {
  constexpr auto kPause = std::chrono::microseconds(100);
  std::optional<std::string> last;
  while (true) {
    {
      const MutexLock lock(mutex_);
      arrange();
      const auto next = last ? families_.upper_bound(*last) : families_.begin();
      if (next == families_.end()) return;
      last = next->first;
      visit(next->second);
    }
    std::this_thread::sleep_for(kPause);
  }
}

void Store::commit(StoredSource& source, Source& with, Nanoseconds now) {
  const MutexLock lock(mutex_);
  if (with.has_changes()) apply(source, with);
  while (!with.exemplars_.empty()) {  // their nodes move: nothing is allocated under the mutex
    auto added = source.exemplars.insert(with.exemplars_.extract(with.exemplars_.begin()));
    if (!added.inserted) added.position->second = std::move(added.node.mapped());
  }
  source.frame.copy_from(with.frame_);
  source.committed_at = now;
  source.is_shown = true;
  changed();
}

void Store::hide(StoredSource& source) noexcept {
  const MutexLock lock(mutex_);
  if (std::exchange(source.is_shown, false)) changed();
}

void Store::hide(std::string_view part) noexcept {
  const MutexLock lock(mutex_);
  for (auto& [age, source] : sources_) {
    if (source.part == part) source.is_shown = false;
  }
  changed();
}

void Store::detach(StoredSource& source) noexcept {
  const MutexLock lock(mutex_);
  clear(source);
  sources_.erase(source.age);
  changed();
}

void Store::apply(StoredSource& source, const Source& with) {
  if (with.is_cleared_) clear(source);
  source.slots.resize(std::max(source.slots.size(), with.end_));
  for (const Source::Change& change : with.changes_) {
    StoredSource::Slot& slot = source.slots[change.slot];
    if (change.family != nullptr) {
      free(source, change.slot);  // dropped since the last commit
      slot.family = &family(*change.family);
      slot.rank = ++ranks_ & StoredSource::kRanks;
      slot.part = change.part;
      slot.is_lasting = change.is_lasting;
      set_since(source, change.slot, change.since);
    }
    slot.labels = change.labels;
    invalidate(*slot.family);
  }
  // The list of dropped slots begins with those since the last commit; those before them are free already.
  for (Source::Slot at = with.free_; at != Source::kNone && source.slots[at].family != nullptr;
       at = with.next_free_[at]) {
    free(source, at);
  }
  if (source.frame.size() != with.frame_.size()) source.frame.resize(with.frame_.size());
}

void Store::clear(StoredSource& source) noexcept {
  for (std::size_t slot = 0; slot < source.slots.size(); ++slot) free(source, slot);
  source.slots.clear();
  source.since.clear();
}

void Store::free(StoredSource& source, std::size_t slot) noexcept {
  StoredSource::Slot& freed = source.slots[slot];
  if (freed.family != nullptr) invalidate(*freed.family);
  freed = {};
  source.exemplars.erase(slot);
}

void Store::invalidate(Family& family) noexcept {
  family.invalidate();
  is_disarranged_ = true;
}

Family& Store::family(const MetricDescriptor& descriptor) {
  if (const auto known = families_.find(descriptor.name); known != families_.end()) return known->second;
  std::size_t id = families_.size();
  if (!free_ids_.empty()) {
    id = free_ids_.back();
    free_ids_.pop_back();
  }
  return families_.try_emplace(descriptor.name, descriptor, id).first->second;
}

void Store::arrange() const {
  if (!is_disarranged_) return;
  for (const auto& [age, source] : sources_) {
    for (std::uint32_t i = 0; i < source.slots.size(); ++i) {
      Family* const family = source.slots[i].family;
      if (family != nullptr && family->version() == 0) family->lines_.push_back({&source, i, false});
    }
  }
  for (auto& [name, family] : families_) {
    if (family.version() == 0) family.arrange(++versions_);
  }
  is_disarranged_ = false;
}

}  // namespace gpumeter
