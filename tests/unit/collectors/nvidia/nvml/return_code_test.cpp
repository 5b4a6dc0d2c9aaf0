#include "collectors/nvidia/nvml/return_code.hpp"

#include <gtest/gtest.h>

#include "collectors/nvidia/nvml/constants.hpp"

namespace gpumeter::nvidia {
namespace {

struct Meaning {
  unsigned result;
  Blame blame;
  ReadStatus status;
};

constexpr Meaning kMeanings[] = {
    {nvml::kSuccess, Blame::nobody, ReadStatus::ok},
    {nvml::kNotSupported, Blame::call, ReadStatus::unsupported},
    {nvml::kFunctionNotFound, Blame::call, ReadStatus::unsupported},
    {nvml::kArgumentVersionMismatch, Blame::call, ReadStatus::unsupported},
    {nvml::kDeprecated, Blame::call, ReadStatus::unsupported},
    {nvml::kInvalidArgument, Blame::call, ReadStatus::unsupported},
    {nvml::kNoPermission, Blame::call, ReadStatus::denied},
    {nvml::kTimeout, Blame::call, ReadStatus::timeout},
    {nvml::kNotFound, Blame::call, ReadStatus::failed},
    {nvml::kNoData, Blame::call, ReadStatus::failed},
    {nvml::kNotReady, Blame::call, ReadStatus::failed},
    {nvml::kUnknown, Blame::call, ReadStatus::failed},
    {31337, Blame::call, ReadStatus::failed},
    {nvml::kGpuIsLost, Blame::device, ReadStatus::gone},
    {nvml::kResetRequired, Blame::device, ReadStatus::gone},
    {nvml::kGpuNotFound, Blame::device, ReadStatus::gone},
    {nvml::kUninitialized, Blame::library, ReadStatus::gone},
    {nvml::kDriverNotLoaded, Blame::library, ReadStatus::gone},
    {nvml::kLibRmVersionMismatch, Blame::library, ReadStatus::gone},
};

TEST(NvmlReturn, SaysWhoIsToBlameAndHowTheReadEnded) {
  for (const Meaning& meaning : kMeanings) {
    EXPECT_EQ(blame_of(meaning.result), meaning.blame) << meaning.result;
    EXPECT_EQ(status_of(meaning.result), meaning.status) << meaning.result;
  }
}

TEST(NvmlReturn, OnlyWhatWillNeverComeIsLacking) {
  for (const Meaning& meaning : kMeanings) {
    const bool never = meaning.status == ReadStatus::unsupported || meaning.status == ReadStatus::denied;
    EXPECT_EQ(is_lacking(meaning.status), never) << meaning.result;
  }
}

TEST(NvmlReturn, ReasonsSayWhatWouldHelp) {
  EXPECT_EQ(reason_of(nvml::kDriverNotLoaded), "the kernel module is not loaded: modprobe nvidia");
  EXPECT_EQ(reason_of(nvml::kLibRmVersionMismatch),
            "reboot needed: the driver's library and its kernel module have different versions, as after an "
            "upgrade; unloading and loading the module also works");
  EXPECT_EQ(reason_of(nvml::kGpuIsLost),
            "a GPU has fallen off the bus: reset it (nvidia-smi --gpu-reset) or reboot");
  EXPECT_EQ(reason_of(nvml::kUnknown), "NVML error 999");
}

}  // namespace
}  // namespace gpumeter::nvidia
