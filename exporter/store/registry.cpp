#include "exporter/store/registry.hpp"

#include <utility>

#include "exporter/store/syntax.hpp"

namespace gpumeter {
namespace {

/// The set's values, into a block of its lines.
void fill(LineBlock& block, const SeriesSet& set) noexcept {
  SampleSink sink = block.frame.sink();
  for (std::size_t slot = 0; slot < set.entries.size(); ++slot) sink.set(slot, set.entries[slot].value);
  block.visible = true;
}

std::unique_ptr<LineBlock> block_of(std::uint64_t age, const SeriesSet& set) {
  auto block = std::make_unique<LineBlock>(set.collector, age, set.entries.size());
  for (const SeriesSet::Entry& entry : set.entries) {
    block->add(*entry.family, entry.labels.text(), entry.labels.order(), entry.suffix);
  }
  fill(*block, set);
  return block;
}

bool has_lines(const LineBlock& block, const SeriesSet& set) noexcept {
  if (block.size() != set.entries.size() || block.collector() != set.collector) return false;
  for (std::size_t slot = 0; slot < set.entries.size(); ++slot) {
    const SeriesSet::Entry& entry = set.entries[slot];
    if (!block.is_line(slot, *entry.family, entry.labels.text(), entry.suffix)) return false;
  }
  return true;
}

}  // namespace

SourceId Registry::attach(std::string_view collector, const LabelBlock& labels,
                          std::span<const SeriesSpec> series) {
  const std::uint64_t age = ++ages_;
  auto block = std::make_unique<LineBlock>(collector, age, series.size());
  for (const SeriesSpec& spec : series) {
    block->add(*spec.family, labels.with(spec.labels).text(), labels.order());
  }
  const SourceId id{age};
  MutexLock lock(mutex_);
  families_.add(*block);
  sources_.emplace(id, Source{std::move(block), nullptr});
  changed();
  return id;
}

bool Registry::show(LineBlock& block, const Frame& frame) noexcept {
  if (block.size() != frame.size()) return false;
  block.frame.copy_from(frame);
  block.visible = true;
  return true;
}

void Registry::commit(SourceId id, const Frame& frame) noexcept {
  MutexLock lock(mutex_);
  Source* source = find(id);
  if (source != nullptr && show(*source->lines, frame)) changed();
}

void Registry::commit(SourceId id, const Frame& frame, const SeriesSet& set) {
  if (commit_values(id, frame, set)) return;
  auto block = block_of(++ages_, set);
  MutexLock lock(mutex_);
  Source* source = find(id);
  if (source == nullptr || !show(*source->lines, frame)) return;
  replace(source->set, std::move(block));
  changed();
}

// False: the lines are others than the last time, or the source is unknown.
bool Registry::commit_values(SourceId id, const Frame& frame, const SeriesSet& set) noexcept {
  MutexLock lock(mutex_);
  Source* source = find(id);
  if (source == nullptr || source->set == nullptr || !has_lines(*source->set, set)) return false;
  if (!show(*source->lines, frame)) return false;
  fill(*source->set, set);
  changed();
  return true;
}

void Registry::hide(SourceId id) noexcept {
  MutexLock lock(mutex_);
  Source* source = find(id);
  if (source == nullptr) return;
  const bool was_visible = std::exchange(source->lines->visible, false);
  const bool set_was = source->set != nullptr && std::exchange(source->set->visible, false);
  if (was_visible || set_was) changed();
}

void Registry::detach(SourceId id) {
  MutexLock lock(mutex_);
  const auto found = sources_.find(id);
  if (found == sources_.end()) return;
  families_.remove(*found->second.lines);
  if (found->second.set != nullptr) families_.remove(*found->second.set);
  sources_.erase(found);
  changed();
}

void Registry::publish(std::string_view set_name, const SeriesSet& set) {
  auto block = block_of(++ages_, set);
  MutexLock lock(mutex_);
  replace(sets_[std::string(set_name)], std::move(block));
  changed();
}

void Registry::replace(std::unique_ptr<LineBlock>& place, std::unique_ptr<LineBlock> block) {
  if (place != nullptr && place->same_lines(*block) && place->collector() == block->collector()) {
    place->frame.copy_from(block->frame);
    return;
  }
  if (place != nullptr) families_.remove(*place);
  families_.add(*block);
  place = std::move(block);
}

Rendered Registry::render(Format format, const Filter& filter) const {
  Rendered page;
  MutexLock lock(mutex_);
  for (const auto& [id, source] : sources_) {
    source.lines->selected = filter.wants(source.lines->collector());
    if (source.set != nullptr) source.set->selected = filter.wants(source.set->collector());
  }
  for (const auto& [name, block] : sets_) block->selected = filter.wants(block->collector());
  page.generation = generation();
  constexpr std::size_t kSlack = 4096;  // numbers that grew a digit
  std::size_t& last_size = last_size_[static_cast<std::size_t>(format)];
  if (filter.empty()) page.text.reserve(last_size + kSlack);
  families_.render(format, page.text);
  if (format == Format::openmetrics) page.text += kOpenMetricsEnd;
  if (filter.empty()) last_size = page.text.size();
  return page;
}

Registry::Source* Registry::find(SourceId id) noexcept {
  const auto found = sources_.find(id);
  return found == sources_.end() ? nullptr : &found->second;
}

}  // namespace gpumeter
