#include <gtest/gtest.h>

#include "collectors/simulated/options.hpp"

namespace gpumeter::simulated {
namespace {

std::string error_of(const std::string& text) {
  const auto option = parse_process_option(text, 2);
  return option ? "no error" : option.error().message();
}

TEST(ProcessOption, TakesAPidOrAFile) {
  const auto pid = parse_process_option("1=4711", 2);
  EXPECT_EQ(pid->device, 1);
  EXPECT_EQ(pid->pid, 4711);
  EXPECT_EQ(pid->busy, std::nullopt);
  EXPECT_EQ(pid->memory_bytes, std::nullopt);
  const auto file = parse_process_option("*=/run/a=b.pids,memory=512MiB,busy=0.5", 2);
  EXPECT_EQ(file->device, std::nullopt);
  EXPECT_EQ(file->pid, 0);
  EXPECT_EQ(file->file, "/run/a=b.pids");
  EXPECT_EQ(file->busy, 0.5);
  EXPECT_EQ(file->memory_bytes, 512.0 * 1024 * 1024);
}

TEST(ProcessOption, TakesMemoryInBytesAndTheirMultiples) {
  const auto memory = [](const std::string& text) {
    return parse_process_option("0=1,memory=" + text, 1)->memory_bytes;
  };
  EXPECT_EQ(memory("0"), 0);
  EXPECT_EQ(memory("1000"), 1000);
  EXPECT_EQ(memory("1KiB"), 1024);
  EXPECT_EQ(memory("1.5GiB"), 1610612736);
}

TEST(ProcessOption, AnErrorNamesTheTextAndWhatWouldBeRight) {
  const std::string form =
      R"(: must be "GPU=WHO[,busy=RATIO][,memory=BYTES]", such as "0=/run/pids,busy=0.5,memory=2GiB")";
  for (const char* text : {"", "0", "0=", "=7", "0=7,", "0=7,speed=1", "0=7,busy=1,busy=1", "0=7,,"}) {
    EXPECT_EQ(error_of(text), '"' + std::string(text) + '"' + form);
  }
  EXPECT_EQ(error_of("2=7"), R"("2=7": no device "2"; must be * or a number below 2)");
  EXPECT_EQ(error_of("-1=7"), R"("-1=7": no device "-1"; must be * or a number below 2)");
  EXPECT_EQ(error_of("0=0"), R"("0=0": "0" is neither a pid nor an absolute path)");
  EXPECT_EQ(error_of("0=run/x"), R"("0=run/x": "run/x" is neither a pid nor an absolute path)");
  for (const char* busy : {"", "-0.1", "1.1", "nan", "half"}) {
    EXPECT_EQ(
        error_of("0=7,busy=" + std::string(busy)),
        "\"0=7,busy=" + std::string(busy) + "\": busy must be a number from 0 to 1, not \"" + busy + '"');
  }
  for (const char* memory : {"", "GiB", "-1", "nan", "inf", "2GB", "2000000GiB"}) {
    EXPECT_EQ(error_of("0=7,memory=" + std::string(memory)),
              "\"0=7,memory=" + std::string(memory) +
                  "\": memory must be bytes, or a number with KiB, MiB or GiB, not \"" + memory + '"');
  }
}

}  // namespace
}  // namespace gpumeter::simulated
