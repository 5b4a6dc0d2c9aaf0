#include "collectors/attribution/allocation/readings.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "collectors/api/catalog.hpp"

namespace gpumeter::allocation {
namespace {

struct Copy {
  const MetricDescriptor* family;
  Labels labels;
  BusyTime value;
};

constexpr std::array<const MetricDescriptor*, 5> kRead = {
    &catalog::busy_seconds, &catalog::partition_busy_seconds, &catalog::partition_info,
    &catalog::workload_busy_seconds, &catalog::workload_share};

std::vector<Copy> copied(const Store& store) {
  std::vector<Copy> copies;
  store.walk([&](const Family& family) {
    if (std::ranges::find(kRead, &family.descriptor()) == kRead.end()) return;
    family.for_each([&](const Series& it) {
      copies.push_back({&family.descriptor(), it.labels(), {it.value(), it.committed_at()}});
    });
  });
  return copies;
}

class Row {
 public:
  explicit Row(const Labels& labels) : pairs_(labels.pairs()) {}

  std::string operator[](std::string_view label) const {
    const auto found = std::ranges::find(pairs_, label, &Labels::Pair::first);
    return found == pairs_.end() ? std::string() : std::string(found->second);
  }
  Readings::OnDevice on_device() const {
    const auto kind = cgroup::kKindNames.find((*this)["kind"]).value_or(cgroup::Kind::other);
    return {(*this)["uuid"], {kind, (*this)["workload"]}};
  }

 private:
  std::vector<Labels::Pair> pairs_;
};

void take(const Copy& copy, Readings& readings) {
  const Row row(copy.labels);
  if (copy.family == &catalog::workload_share) {
    readings.present.insert(row.on_device());
    readings.listed[row["uuid"]] = copy.value.at;
  } else if (copy.family == &catalog::workload_busy_seconds) {
    readings.of_workloads[row.on_device()] = copy.value;
  } else if (copy.family == &catalog::partition_info) {
    const Place place = {row["uuid"], row["partition"]};
    readings.partitions.push_back({place, row["mig_uuid"], row["gpu_instance"], row["compute_instance"],
                                   row["profile"], row["profile_id"], row["placement"]});
  } else {
    readings.busy[{row["uuid"], row["partition"]}] = copy.value;
  }
}

}  // namespace

Readings read(const Store& store) {
  Readings readings;
  for (const Copy& copy : copied(store)) take(copy, readings);
  return readings;
}

std::optional<BusyTime> Readings::own(const OnDevice& key) const {
  if (const auto known = of_workloads.find(key); known != of_workloads.end()) return known->second;
  const auto list = listed.find(key.first);
  if (list == listed.end() || present.contains(key)) return std::nullopt;
  return BusyTime{0, list->second};
}

}  // namespace gpumeter::allocation
