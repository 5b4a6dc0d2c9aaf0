#include "daemon/cli/docs.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/labels.hpp"
#include "collectors/api/self_catalog.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"
#include "collectors/attribution/names/name_book.hpp"
#include "collectors/builtin.hpp"
#include "collectors/grpc/call.hpp"
#include "collectors/jobs/wire/line.hpp"
#include "collectors/jobs/wire/vocabulary.hpp"
#include "collectors/kubernetes/part.hpp"
#include "exporter/health/conditions.hpp"
#include "exporter/store/store.hpp"
#include "programs/nccl/gate.hpp"
#include "programs/nccl/ras.hpp"
#include "programs/profiler/desk.hpp"

namespace gpumeter {
namespace {

using catalog::covered;
using catalog::LabelMeaning;

/// The row that explains the value; null: none does.
const LabelMeaning* meaning_of(std::string_view family, std::string_view label, std::string_view value) {
  for (const LabelMeaning& each : catalog::kLabels) {
    const bool is_of_label = covered(each.families, family) > 0 && covered(each.labels, label) > 0;
    if (is_of_label && (each.values.empty() || covered(each.values, value) > 0)) return &each;
  }
  return nullptr;
}

std::string text_of(std::string_view family, std::string_view label, std::string_view value) {
  return std::string(family) + "{" + std::string(label) + "=\"" + std::string(value) + "\"}";
}

TEST(MetricsDocs, AFamilyOfTheCatalogueIsDeclaredAsItIsOrNotAtAll) {
  Store store;
  store.reserve(catalogue_families(builtin_collectors()));
  for (const MetricDescriptor* family : {&catalog::power, &catalog::ml_loss, &self_catalog::simulated}) {
    MetricDescriptor other = *family;
    EXPECT_EQ(*store.declare(other), family);
    other.help = "Something else.";
    EXPECT_FALSE(store.declare(other)) << family->name;
  }
}

TEST(MetricsDocs, EveryLabelOfARowIsExplainedWithItsValue) {
  std::size_t checked = 0;
  for (const CollectorEntry& collector : builtin_collectors()) {
    for (const RowDoc& row : collector.metrics()) {
      for (const LabelSet::Pair& pair : row.labels.pairs) {
        if (pair.name.empty()) continue;
        ++checked;
        EXPECT_NE(meaning_of(row.family->name, pair.name, pair.value), nullptr)
            << text_of(row.family->name, pair.name, pair.value);
      }
    }
  }
  EXPECT_GT(checked, 1000U);
}

TEST(MetricsDocs, EveryStateOfAModeIsInTheMeaningOfTheMode) {
  for (const CollectorEntry& collector : builtin_collectors()) {
    for (const RowDoc& row : collector.metrics()) {
      if (row.family != &catalog::mode) continue;
      const std::string_view mode = row.labels.pairs[0].value, state = row.labels.pairs[1].value;
      const LabelMeaning* meaning = meaning_of(row.family->name, "mode", mode);
      ASSERT_NE(meaning, nullptr) << mode;
      EXPECT_NE(meaning->meaning.find(state), std::string_view::npos) << mode << ": " << state;
    }
  }
}

template <class Enum, std::size_t N>
void expect_explained(const MetricDescriptor& family, std::string_view label, const EnumNames<Enum, N>& names,
                      std::string_view not_exported = {}) {
  for (const auto& [value, name] : names) {
    if (name == not_exported) continue;
    const LabelMeaning* meaning = meaning_of(family.name, label, name);
    ASSERT_NE(meaning, nullptr) << text_of(family.name, label, name);
    // A row without a meaning refers to the help.
    const std::string_view text = meaning->meaning.empty() ? family.help : meaning->values;
    EXPECT_NE(text.find(name), std::string_view::npos) << text_of(family.name, label, name);
  }
}

TEST(MetricsDocs, EveryValueOfAnEnumerationIsExplained) {
  expect_explained(self_catalog::jobs_dropped, "reason", jobs::kRefusalNames);
  expect_explained(self_catalog::names_source_errors, "reason", grpc::kFailureNames, "none");
  expect_explained(self_catalog::names_source_up, "source", kubelet::kSourceNames);
  expect_explained(self_catalog::read_errors, "status", kReadStatusNames, "ok");
  expect_explained(self_catalog::nccl_state, "state", nccl::kStateNames);
  expect_explained(catalog::ml_nccl_ranks, "state", nccl::kRankStateNames);
  expect_explained(catalog::ml_profiles, "status", profiles::kStatusNames);
  expect_explained(catalog::workload_info, "kind", cgroup::kKindNames);
  expect_explained(catalog::allocation_info, "source", workloads::kAllocationSourceNames);
}

}  // namespace
}  // namespace gpumeter
