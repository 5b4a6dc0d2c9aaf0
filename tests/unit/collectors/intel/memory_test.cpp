#include "collectors/intel/memory.hpp"

#include <gtest/gtest.h>
#include <i915_drm.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/fakes/intel_card_test.hpp"

namespace gpumeter::intel::memory {
namespace {

using Bytes = std::vector<std::byte>;

template <class T>
void append(Bytes& bytes, const T& value) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(T));
}

Bytes xe_answer(const std::vector<XeMemoryRegion>& regions) {
  Bytes bytes;
  append(bytes, XeMemoryRegions{static_cast<std::uint32_t>(regions.size()), 0});
  for (const XeMemoryRegion& region : regions) append(bytes, region);
  return bytes;
}

XeMemoryRegion xe_region(std::uint16_t memory_class, std::uint64_t size, std::uint64_t used) {
  return {memory_class, 0, 4096, size, used, size / 2, used / 2, {}};
}

drm_i915_memory_region_info i915_region(std::uint16_t memory_class, std::uint64_t size, std::uint64_t free) {
  drm_i915_memory_region_info info{};
  info.region.memory_class = memory_class;
  info.probed_size = size;
  info.unallocated_size = free;
  info.probed_cpu_visible_size = size / 4;
  info.unallocated_cpu_visible_size = size / 4;
  return info;
}

Bytes i915_answer(const std::vector<drm_i915_memory_region_info>& regions) {
  Bytes bytes;
  drm_i915_query_memory_regions header;  // not {}: clang rejects it for the array without a size at its end
  std::memset(&header, 0, sizeof header);
  header.num_regions = static_cast<std::uint32_t>(regions.size());
  append(bytes, header);
  for (const drm_i915_memory_region_info& region : regions) append(bytes, region);
  return bytes;
}

TEST(XeRegions, AreTheSumOfAllTiles) {
  const Bytes answer = xe_answer({xe_region(0, 1000, 10), xe_region(1, 400, 40), xe_region(1, 400, 20)});
  const Regions regions = decode_xe(answer, false);
  EXPECT_EQ(regions.status, ReadStatus::ok);
  EXPECT_EQ(regions.size, 800);
  EXPECT_EQ(regions.used, 60);
  EXPECT_EQ(regions.visible_size, 400);
  EXPECT_EQ(regions.visible_used, 30);
}

TEST(XeRegions, NothingUsedIsUnknownWithoutPermission) {
  const Bytes answer = xe_answer({xe_region(1, 400, 0)});
  EXPECT_EQ(decode_xe(answer, false).used, std::nullopt);
  EXPECT_EQ(decode_xe(answer, false).size, 400);
  EXPECT_EQ(decode_xe(answer, true).used, 0);
}

TEST(XeRegions, GraphicsInTheProcessorHaveNone) {
  EXPECT_EQ(decode_xe(xe_answer({xe_region(0, 1000, 10)}), true).status, ReadStatus::unsupported);
  EXPECT_EQ(decode_xe(xe_answer({}), true).status, ReadStatus::unsupported);
}

TEST(Regions, AnAnswerThatEndsEarlyIsAFailure) {
  Bytes xe = xe_answer({xe_region(1, 400, 40), xe_region(1, 400, 40)});
  xe.pop_back();
  EXPECT_EQ(decode_xe(xe, true).status, ReadStatus::failed);
  EXPECT_EQ(decode_xe(Bytes(7), true).status, ReadStatus::failed);
  EXPECT_EQ(decode_i915(Bytes(15), true).status, ReadStatus::failed);
}

TEST(I915Regions, UsedIsWhatIsNotFree) {
  const Bytes answer = i915_answer({i915_region(0, 1000, 900), i915_region(1, 400, 300)});
  EXPECT_EQ(decode_i915(answer, false).size, 400);
  EXPECT_EQ(decode_i915(answer, false).used, 100);
  EXPECT_EQ(decode_i915(answer, false).visible_size, 100);
  EXPECT_EQ(decode_i915(answer, false).visible_used, std::nullopt);
  EXPECT_EQ(decode_i915(i915_answer({i915_region(1, 400, 400)}), false).used, std::nullopt);
}

/// A driver that answers the two calls of a query, and checks their form.
struct FakeDriver {
  Bytes answer;
  int error = 0;

  int operator()(int, unsigned long request, void* argument) {
    if (error != 0) {
      errno = error;
      return -1;
    }
    return request == DRM_IOCTL_I915_QUERY ? i915(*static_cast<drm_i915_query*>(argument))
                                           : xe(*static_cast<XeDeviceQuery*>(argument));
  }
  int i915(const drm_i915_query& query) {
    EXPECT_EQ(query.num_items, 1U);
    auto& item = *reinterpret_cast<drm_i915_query_item*>(query.items_ptr);
    EXPECT_EQ(item.query_id, std::uint64_t{DRM_I915_QUERY_MEMORY_REGIONS});
    if (item.length == 0) {
      item.length = static_cast<std::int32_t>(answer.size());
    } else {
      std::memcpy(reinterpret_cast<void*>(item.data_ptr), answer.data(), answer.size());
    }
    return 0;
  }
  int xe(XeDeviceQuery& query) {
    EXPECT_EQ(query.query, kXeQueryMemoryRegions);
    if (query.size == 0) {
      query.size = static_cast<std::uint32_t>(answer.size());
    } else {
      std::memcpy(reinterpret_cast<void*>(query.data), answer.data(), answer.size());
    }
    return 0;
  }
};

TEST(MemoryQuery, AsksForTheSizeAndThenForTheAnswer) {
  EXPECT_EQ(query(3, "xe", true, FakeDriver{xe_answer({xe_region(1, 400, 40)})}).used, 40);
  EXPECT_EQ(query(3, "i915", true, FakeDriver{i915_answer({i915_region(1, 400, 390)})}).used, 10);
}

TEST(MemoryQuery, PassesOnTheReasonOfARefusal) {
  EXPECT_EQ(query(3, "xe", true, FakeDriver{{}, EACCES}).status, ReadStatus::denied);
  EXPECT_EQ(query(3, "i915", true, FakeDriver{{}, EINVAL}).status, ReadStatus::unsupported);
  EXPECT_EQ(query(3, "xe", true, FakeDriver{}).status, ReadStatus::failed);
  EXPECT_EQ(query(3, "xe", true, FakeDriver{Bytes(100000)}).status, ReadStatus::failed);
  EXPECT_EQ(query_node("/dev/dri/renderD0", "xe", true).status, ReadStatus::gone);
}

class CardMemory : public OneIntelCard {};

TEST_F(CardMemory, IsAskedForOnceAPassAndNotWhileTheCardSleeps) {
  int asked = 0;
  write("drm/renderD128/dev", "226:128\n");
  write("power/runtime_status", "active\n");
  environment_.query_memory = [&](const std::string& node, const std::string& driver) {
    EXPECT_EQ(node, "/dev/dri/renderD128");
    EXPECT_EQ(driver, "xe");
    ++asked;
    return Regions{1000, 300, 500, std::nullopt, ReadStatus::ok};
  };
  attach();
  const int at_attach = asked;
  page_->pass(Tier::normal);
  EXPECT_EQ(asked, at_attach + 1);
  EXPECT_EQ(page_->text(),
            "gpu_memory_free_bytes{memory=\"vram\"} 700\n"
            "gpu_memory_size_bytes{memory=\"vram\"} 1000\n"
            "gpu_memory_used_bytes{memory=\"vram\"} 300\n"
            "gpu_visible_memory_size_bytes 500\n");
  write("power/runtime_status", "suspended\n");
  page_->pass(Tier::normal);
  attach();
  page_->pass(Tier::normal);
  EXPECT_EQ(asked, at_attach + 1);
}

}  // namespace
}  // namespace gpumeter::intel::memory
