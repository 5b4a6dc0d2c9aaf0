#include "collectors/nvidia/link_peers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectors/nvidia/identity.hpp"
#include "tests/fakes/fake_driver.hpp"

// Where NVLinks lead: to a GPU, to a switch of the bus, to a switch beyond it, or nowhere.

namespace gpumeter::nvidia {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Where `count` links lead that are as `links` describes them.
std::vector<std::string> peers(int count, const std::string& links,
                               const std::vector<std::string>& without = {}) {
  const std::string number = std::to_string(count);
  const FakeDriver driver("devices: [{uuid: GPU-0, fields: {91: " + number + "}, nvlink: {count: " + number +
                              ", " + links + "}}]",
                          without);
  driver.set_time(0);
  const auto session = NvmlSession::shared(driver.library());
  std::optional<NvmlCaller> gpu = find_gpu(*session, "GPU-0");
  return identify(*gpu, 0)->linked_to;
}

TEST(LinkPeers, ABridgeLeadsToTheOtherGpu) {
  EXPECT_THAT(peers(4, "link: {remote: gpu, remote_address: \"0001:4b:00.0\"}"), ElementsAre("0001:4b:00.0"));
}

TEST(LinkPeers, SeveralGpusAreSortedAndALinkThatIsDownLeadsNowhere) {
  EXPECT_THAT(peers(3,
                    "link: {remote: gpu, remote_address: \"0000:c1:00.0\"}, links: {1: {remote: ~}, "
                    "2: {remote: gpu, remote_address: \"0000:41:00.0\"}}"),
              ElementsAre("0000:41:00.0", "0000:c1:00.0"));
}

TEST(LinkPeers, SwitchesOfTheBusAreNamedByTheirAddresses) {
  EXPECT_THAT(peers(3,
                    "link: {remote: switch, remote_address: \"0000:85:00.0\"}, "
                    "links: {2: {remote_address: \"0000:86:00.0\"}}"),
              ElementsAre("switch:0000:85:00.0", "switch:0000:86:00.0"));
}

TEST(LinkPeers, SwitchesBeyondTheBusAreOneDomain) {
  EXPECT_THAT(peers(18, "link: {remote: switch}"), ElementsAre("switch:"));
  EXPECT_THAT(peers(18, "link: {remote: switch, remote_address: \"ffffffff:ff:ff.0\"}"),
              ElementsAre("switch:"));
}

TEST(LinkPeers, AGpuWithoutAnAddressOrOfAnotherKindIsNoPeer) {
  EXPECT_THAT(peers(2, "link: {remote: gpu}"), IsEmpty());
  EXPECT_THAT(peers(2, "link: {remote: npu, remote_address: \"0000:85:00.0\"}"), IsEmpty());
  EXPECT_THAT(peers(2, "link: {remote: 255, remote_address: \"0000:85:00.0\"}"), IsEmpty());
}

// As an H100 without a board of NVSwitches answers, with driver 580.159: no links, and no other call.
TEST(LinkPeers, WithoutLinksNoLinkIsAskedFor) {
  const FakeDriver driver("devices: [{uuid: GPU-0, fields: {91: 0}}]");
  driver.set_time(0);
  const auto session = NvmlSession::shared(driver.library());
  std::optional<NvmlCaller> gpu = find_gpu(*session, "GPU-0");
  EXPECT_THAT(identify(*gpu, 0)->linked_to, IsEmpty());
  EXPECT_EQ(driver.calls("nvmlDeviceGetNvLinkRemoteDeviceType"), 0U);
}

TEST(LinkPeers, AnOldLibraryHasNone) {
  EXPECT_THAT(peers(2, "link: {remote: switch}", {"nvmlDeviceGetNvLinkRemoteDeviceType"}), IsEmpty());
}

}  // namespace
}  // namespace gpumeter::nvidia
