#include "collectors/intel/ras.hpp"

#include <gtest/gtest.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/fakes/intel_card_test.hpp"
#include "tests/fakes/requirements.hpp"

namespace gpumeter::intel::ras {
namespace {

using Bytes = std::vector<std::byte>;

void append(Bytes& bytes, const void* data, std::size_t size) {
  const auto* const begin = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
  bytes.resize((bytes.size() + 3) & ~std::size_t{3});
}

/// An answer of the kernel, message by message (Documentation/netlink/specs/drm_ras.yaml).
class Answer {
 public:
  Answer& begin(std::uint16_t type, std::uint32_t sequence, std::uint16_t flags = NLM_F_MULTI) {
    start_ = bytes_.size();
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = flags;
    header.nlmsg_seq = sequence;
    append(bytes_, &header, sizeof(header));
    return *this;
  }
  Answer& generic(std::uint8_t command) {
    const genlmsghdr header{command, 1, 0};
    append(bytes_, &header, sizeof(header));
    return *this;
  }
  Answer& raw(const void* data, std::size_t size) {
    append(bytes_, data, size);
    return *this;
  }
  template <class Number>
  Answer& number(std::uint16_t type, Number value) {
    const nlattr header{static_cast<std::uint16_t>(sizeof(nlattr) + sizeof(Number)), type};
    append(bytes_, &header, sizeof(header));
    append(bytes_, &value, sizeof(Number));
    return *this;
  }
  Answer& text(std::uint16_t type, const std::string& value) {
    const nlattr header{static_cast<std::uint16_t>(sizeof(nlattr) + value.size() + 1), type};
    append(bytes_, &header, sizeof(header));
    append(bytes_, value.c_str(), value.size() + 1);
    return *this;
  }
  Answer& end() {
    const auto size = static_cast<std::uint32_t>(bytes_.size() - start_);
    std::memcpy(bytes_.data() + start_, &size, sizeof(size));
    return *this;
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
  std::size_t start_ = 0;
};

constexpr std::uint16_t kFamilyNumber = 40;

Answer nodes() {
  Answer answer;
  answer.begin(kFamilyNumber, 7).generic(1).number(1, std::uint32_t{0});
  answer.text(2, "0000:03:00.0").text(3, "correctable-errors").number(4, std::uint32_t{1}).end();
  answer.begin(kFamilyNumber, 7).generic(1).number(1, std::uint32_t{1});
  answer.text(2, "0000:03:00.0").text(3, "uncorrectable-errors").number(4, std::uint32_t{1}).end();
  const int done = 0;
  return answer.begin(NLMSG_DONE, 7).raw(&done, sizeof(done)).end();
}

std::vector<std::string> names_in(const Bytes& bytes, std::uint32_t sequence, End& end) {
  std::vector<std::string> names;
  Messages messages(bytes, sequence);
  while (const auto attributes = messages.next()) {
    if (const auto node = node_of(*attributes)) {
      names.push_back(std::to_string(node->id) + " " + std::string(node->device) + " " +
                      std::string(node->name));
    }
  }
  end = messages.end();
  return names;
}

TEST(DrmRas, TheNodesOfADump) {
  End end;
  EXPECT_EQ(
      names_in(nodes().bytes(), 7, end),
      (std::vector<std::string>{"0 0000:03:00.0 correctable-errors", "1 0000:03:00.0 uncorrectable-errors"}));
  EXPECT_TRUE(end.is_done);
  EXPECT_EQ(end.error, 0);
}

TEST(DrmRas, AnAnswerToAnEarlierRequestIsSkipped) {
  End end;
  EXPECT_TRUE(names_in(nodes().bytes(), 8, end).empty());
  EXPECT_FALSE(end.is_done);
}

TEST(DrmRas, ACounter) {
  Answer answer;
  answer.begin(kFamilyNumber, 9).generic(2).number(1, std::uint32_t{1}).number(2, std::uint32_t{3});
  answer.text(3, "device-memory").number(4, std::uint32_t{17}).end();
  std::optional<double> value;
  Messages messages(answer.bytes(), 9);
  while (const auto attributes = messages.next()) {
    const auto counter = counter_of(*attributes);
    ASSERT_TRUE(counter);
    EXPECT_EQ(counter->name, "device-memory");
    value = static_cast<double>(counter->value);
  }
  EXPECT_EQ(value, 17);
  EXPECT_FALSE(messages.end().is_done);
}

TEST(DrmRas, RefusalsOfTheKernel) {
  const int error = -EPERM;
  const nlmsghdr original{};
  const Answer answer =
      Answer().begin(NLMSG_ERROR, 7, 0).raw(&error, sizeof(error)).raw(&original, sizeof(original)).end();
  End end;
  names_in(answer.bytes(), 7, end);
  EXPECT_TRUE(end.is_done);
  EXPECT_EQ(end.error, EPERM);
}

TEST(DrmRas, BrokenDatagramsEndTheAnswer) {
  Bytes bytes = nodes().bytes();
  End end;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    names_in(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)), 7, end);
    EXPECT_TRUE(!end.is_done || end.error == 0 || end.error == EPROTO) << size;
  }
  bytes[0] = std::byte{3};  // shorter than its own header
  names_in(bytes, 7, end);
  EXPECT_EQ(end.error, EPROTO);
}

TEST(DrmRas, RequestsHaveTheFormOfTheSpecification) {
  const Request built = counters_request(kFamilyNumber, 5, 11);
  const std::span<const std::byte> request = built.bytes();
  ASSERT_EQ(request.size(), sizeof(nlmsghdr) + sizeof(genlmsghdr) + sizeof(nlattr) + sizeof(std::uint32_t));
  nlmsghdr header{};
  std::memcpy(&header, request.data(), sizeof(header));
  EXPECT_EQ(header.nlmsg_len, request.size());
  EXPECT_EQ(header.nlmsg_type, kFamilyNumber);
  EXPECT_EQ(header.nlmsg_flags, NLM_F_REQUEST | NLM_F_DUMP);
  EXPECT_EQ(header.nlmsg_seq, 11U);
  EXPECT_EQ(request[sizeof(nlmsghdr)], std::byte{2});  // get-error-counter
}

// The kernel of this machine answers; one without the family refuses.
TEST(DrmRas, TheKernelsAnswer) {
  if (const auto reason = no_generic_netlink(); !reason.empty()) GTEST_SKIP() << reason;
  const Counts counts = read_counts("0000:ff:1f.7");
  EXPECT_TRUE(counts.status == ReadStatus::unsupported || counts.status == ReadStatus::denied)
      << to_string(counts.status);
}

TEST(DrmRas, SeveritiesAndCards) {
  EXPECT_EQ(severity_of("correctable-errors"), 0U);
  EXPECT_EQ(severity_of("uncorrectable-errors"), 1U);
  EXPECT_EQ(severity_of("non-fatal"), 1U);
  EXPECT_EQ(severity_of("temperature"), std::nullopt);
  EXPECT_TRUE(is_of("0000:03:00.0", "0000:03:00.0"));
  EXPECT_TRUE(is_of("03:00.0", "0000:03:00.0"));
  EXPECT_FALSE(is_of("03:00.0", "0001:03:00.0"));
}

class RasCard : public OneIntelCard {};

TEST_F(RasCard, ErrorsOfMemoryAreApartFromOthers) {
  environment_.read_errors = [](const std::string& address) {
    EXPECT_EQ(address, "0000:03:00.0");
    Counts counts;
    counts.status = ReadStatus::ok;
    counts.add(0, "device-memory", 4);
    counts.add(1, "device-memory", 1);
    counts.add(1, "core-compute", 2);
    counts.add(1, "moonlight", 9);
    return counts;
  };
  EXPECT_EQ(sampled(),
            "gpu_hardware_errors_total{block=\"core_compute\",severity=\"uncorrected\"} 2\n"
            "gpu_memory_errors_total{severity=\"corrected\",location=\"device_memory\"} 4\n"
            "gpu_memory_errors_total{severity=\"uncorrected\",location=\"device_memory\"} 1\n");
}

TEST_F(RasCard, AKernelWithoutTheFamilyHasNoSeries) {
  environment_.read_errors = [](const std::string&) { return Counts(); };
  EXPECT_EQ(sampled(), "");
}

}  // namespace
}  // namespace gpumeter::intel::ras
