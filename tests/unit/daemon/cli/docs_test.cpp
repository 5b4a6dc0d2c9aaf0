#include "daemon/cli/docs.hpp"

#include <gtest/gtest.h>

#include "collectors/api/catalog.hpp"
#include "collectors/api/self_catalog.hpp"
#include "collectors/builtin.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {
namespace {

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

}  // namespace
}  // namespace gpumeter
