#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "collectors/api/sample.hpp"

namespace gpumeter {

/// The values of a source's slots: an array of doubles followed by status bytes, in one allocation. One
/// memcpy therefore copies a frame, and a frame could live in shared memory. A slot that was never written is
/// `unsupported`. One writer, no lock: a source fills its own frame and Source::commit() copies it into the
/// store.
class Frame {
 public:
  explicit Frame(std::size_t slots = 0);

  std::size_t size() const noexcept { return values_.size(); }
  SampleSink sink() noexcept { return {values_, statuses_}; }
  std::span<const double> values() const noexcept { return values_; }
  std::span<const ReadStatus> statuses() const noexcept { return statuses_; }

  /// Keeps the slots that still fit; new slots are marked as never written.
  void resize(std::size_t slots);
  /// Copies all slots from a frame of the same size. Never allocates.
  void copy_from(const Frame& other) noexcept;

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::span<double> values_;  ///< both spans point into memory_
  std::span<ReadStatus> statuses_;
};

}  // namespace gpumeter
