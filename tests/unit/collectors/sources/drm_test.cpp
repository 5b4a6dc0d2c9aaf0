#include "collectors/sources/drm.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter::drm {
namespace {

TEST(NodesOf, ReadsTheNumbersOfTheFunctionsNodes) {
  const Tree tree = make_tree({{"drm/card2/dev", "226:2\n"},
                               {"drm/card2-DP-1/status", "connected\n"},
                               {"drm/renderD130/dev", "226:130\n"},
                               {"bare/uevent", ""}});
  EXPECT_EQ(nodes_of(tree.path()), (Nodes{2, 130}));
  EXPECT_EQ(nodes_of(tree / "bare"), (Nodes{}));
}

TEST(NodeMap, AsksTheTreeAloneWhereItIsNotTheMachinesOwn) {
  const Tree tree = make_tree({{"0000:03:00.0/uevent", ""}, {"0000:03:00.0/drm/card0/dev", "226:0\n"}});
  const pci::Function function = pci::read_function(tree / "0000:03:00.0").value();
  EXPECT_EQ(NodeMap(tree.path()).of(function), (Nodes{0, std::nullopt}));
}

TEST(LibdrmNodes, AgreesWithSysfsOnThisMachine) {
  for (const auto& [address, nodes] : libdrm_nodes()) {
    EXPECT_EQ(nodes_of("/sys/bus/pci/devices/" + pci::to_string(address)), nodes);
  }
}

}  // namespace
}  // namespace gpumeter::drm
