#include "exporter/registry.hpp"

#include <utility>

#include "exporter/text_format.hpp"

namespace gpumeter {
namespace {

std::unique_ptr<LineBlock> block_of(std::uint64_t age, const SeriesSet& set) {
  auto block = std::make_unique<LineBlock>(set.collector, age, set.entries.size());
  SampleSink sink = block->frame.sink();
  for (const SeriesSet::Entry& entry : set.entries) {
    sink.set(block->size(), entry.value);
    block->add(*entry.family, entry.labels.text(), entry.labels.order(), entry.suffix);
  }
  block->visible = true;
  return block;
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
  sources_.emplace(id, std::move(block));
  changed();
  return id;
}

void Registry::commit(SourceId id, const Frame& frame) noexcept {
  MutexLock lock(mutex_);
  LineBlock* block = find(id);
  if (block == nullptr || block->size() != frame.size()) return;
  block->frame.copy_from(frame);
  block->visible = true;
  changed();
}

void Registry::hide(SourceId id) noexcept {
  MutexLock lock(mutex_);
  LineBlock* block = find(id);
  if (block == nullptr || !block->visible) return;
  block->visible = false;
  changed();
}

void Registry::detach(SourceId id) {
  MutexLock lock(mutex_);
  const auto found = sources_.find(id);
  if (found == sources_.end()) return;
  families_.remove(*found->second);
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
  for (const auto& [id, block] : sources_) block->selected = filter.wants(block->collector());
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

LineBlock* Registry::find(SourceId id) const noexcept {
  const auto found = sources_.find(id);
  return found == sources_.end() ? nullptr : found->second.get();
}

}  // namespace gpumeter
