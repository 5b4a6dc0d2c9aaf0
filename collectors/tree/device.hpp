#pragma once

#include <memory>
#include <span>

#include "collectors/api/collector.hpp"
#include "collectors/tree/context.hpp"
#include "collectors/tree/readers.hpp"

namespace gpumeter::tree {

/// A kind of device: its rows, and what it is like. Both tables have static storage.
///
/// A label value of "*" stands for the label of each sensor of a name with "{*}": at attach, such a row
/// becomes one row per sensor. With an `argument` in its ReadSource, sensors with a lower number are left
/// out.
struct Kind {
  std::span<const Row> rows;
  std::span<const Row> slice_rows;  ///< of each slice, see Shape::slices
  Shape shape;
};

/// A device of that kind. It lists processes if the kind has clients and `roots.users` is not null.
std::unique_ptr<Device> make_device(const Kind& kind, const Roots& roots);

}  // namespace gpumeter::tree
