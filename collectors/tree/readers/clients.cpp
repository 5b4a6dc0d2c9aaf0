#include "collectors/tree/readers.hpp"
#include "collectors/tree/readers/parts.hpp"

namespace gpumeter::tree::readers {
namespace {

/// A value of clients; `read` returns a sample.
template <class Read>
Reader of_clients(TreeContext& context, Read read) {
  if (!context.has_clients()) return {};
  return [&context, read] { return read(context.clients()); };
}

}  // namespace

Reader bind_engine(TreeContext& context, const ReadSource& source) {
  const auto which = static_cast<EngineClass>(source.argument);
  return of_clients(context, [which](const fdinfo::BusyCounters& clients) { return clients.engine(which); });
}

Reader bind_clients_busy(TreeContext& context, const ReadSource&) {
  return of_clients(context, [](const fdinfo::BusyCounters& clients) { return clients.busiest(); });
}

Reader bind_clients_utilization(TreeContext& context, const ReadSource&) {
  return of_clients(context, [](const fdinfo::BusyCounters& clients) { return clients.utilization(); });
}

}  // namespace gpumeter::tree::readers
