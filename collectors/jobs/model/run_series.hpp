#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "exporter/store/store.hpp"

namespace gpumeter::jobs {

/// One series of a source. The destructor drops the series from the source, which must outlive this object.
/// Use from the source's thread only.
class OwnedSlot {
 public:
  OwnedSlot() = default;
  OwnedSlot(Source& source, const MetricDescriptor& family, Labels labels,
            SeriesPart part = SeriesPart::value)
      : source_(&source), slot_(source.add(family, std::move(labels), part)) {}
  ~OwnedSlot() {
    if (source_ != nullptr) source_->drop(slot_);
  }
  OwnedSlot(OwnedSlot&& other) noexcept
      : source_(std::exchange(other.source_, nullptr)), slot_(other.slot_) {}
  OwnedSlot& operator=(OwnedSlot&& other) noexcept {
    std::swap(source_, other.source_);
    std::swap(slot_, other.slot_);
    return *this;
  }

  /// Takes effect at the next commit; nullopt removes the series from the page.
  void show(std::optional<double> value) const noexcept {
    value ? source_->set(slot_, *value) : source_->miss(slot_, ReadStatus::unsupported);
  }

 private:
  Source* source_ = nullptr;  ///< nullptr: no series, as after a move
  Source::Slot slot_ = 0;
};

/// Creates the series of one run; all have the labels `run` and `user`.
class RunSeries {
 public:
  RunSeries(Source& source, std::string_view run, std::string_view user)
      : source_(&source), labels_({{"run", std::string(run)}, {"user", std::string(user)}}) {}

  const Labels& labels() const noexcept { return labels_; }
  OwnedSlot add(const MetricDescriptor& family, Labels labels, SeriesPart part = SeriesPart::value) const {
    return OwnedSlot(*source_, family, std::move(labels), part);
  }
  OwnedSlot add(const MetricDescriptor& family) const { return add(family, labels_); }

 private:
  Source* source_;
  Labels labels_;
};

}  // namespace gpumeter::jobs
