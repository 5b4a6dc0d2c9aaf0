#include "collectors/nccl/files/pickle_machine.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <utility>

namespace gpumeter::nccl {
namespace {

constexpr Pickle::Ref kNowhere = std::numeric_limits<Pickle::Ref>::max();
constexpr std::uint64_t kFirstProtocol = 2;  // torch writes 2
constexpr std::uint64_t kLastProtocol = 5;

std::size_t size_of(PickleMachine::Argument argument) {
  using Argument = PickleMachine::Argument;
  switch (argument) {
    case Argument::none:
      return 0;
    case Argument::byte:
      return 1;
    case Argument::two_bytes:
      return 2;
    case Argument::four_bytes:
    case Argument::signed_four_bytes:
      return 4;
    case Argument::eight_bytes:
    case Argument::big_endian:
      return 8;
  }
  return 0;
}

std::string hexadecimal(unsigned char code) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "0x%02x", code);
  return text.data();
}

}  // namespace

Result<Pickle> PickleMachine::run() {
  while (!is_over_ && error_.empty()) step();
  if (!error_.empty()) return Error("byte " + std::to_string(offset_) + ": " + error_);
  return std::move(data_);
}

void PickleMachine::step() {
  offset_ = data_.bytes_.size() - rest_.size();
  const bool is_first = offset_ == 0;
  if (rest_.empty()) return fail("the pickle ends early");
  const auto code = static_cast<unsigned char>(rest_.front());
  rest_.remove_prefix(1);
  const Opcode* const opcode = opcode_of(code);
  opcode_ = opcode == nullptr ? "opcode" : opcode->name;
  if (is_first && opcode_ != "PROTO")
    return fail("a pickle of protocol 2 to 5 begins with PROTO, not " + hexadecimal(code));
  if (opcode == nullptr || opcode->act == nullptr) {
    return fail("opcode " + (opcode == nullptr ? hexadecimal(code) : std::string(opcode->name)) +
                " is refused, only data is read");
  }
  const std::uint64_t argument = take(opcode->argument);
  if (error_.empty()) (this->*opcode->act)(argument);
}

std::uint64_t PickleMachine::take(Argument argument) {
  const std::string_view bytes = take_bytes(size_of(argument));
  std::uint64_t value = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const std::size_t place = argument == Argument::big_endian ? bytes.size() - 1 - at : at;
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at])) << (8 * place);
  }
  if (argument != Argument::signed_four_bytes) return value;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(value)));
}

std::string_view PickleMachine::take_bytes(std::uint64_t length) {
  if (length > rest_.size()) return fail("the pickle ends early"), std::string_view();
  const std::string_view bytes = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return bytes;
}

void PickleMachine::protocol(std::uint64_t version) {
  if (version >= kFirstProtocol && version <= kLastProtocol && offset_ == 0) return;
  fail("protocol " + std::to_string(version) + " is not one from 2 to 5 at the start");
}

void PickleMachine::stop(std::uint64_t) {
  if (stack_.size() != 1 || !marks_.empty())
    return fail("STOP with " + std::to_string(stack_.size()) + " values");
  data_.root_ = stack_.back();
  is_over_ = true;
}

void PickleMachine::mark(std::uint64_t) {
  if (marks_.size() == Pickle::kDeepest) return fail("more than 64 open containers");
  marks_.push_back(stack_.size());
}

// Two's complement, little-endian, in as many bytes as necessary.
void PickleMachine::long_integer(std::uint64_t length) {
  if (length > sizeof(std::uint64_t)) return fail("an integer of more than 64 bits");
  std::uint64_t value = 0;
  const std::string_view bytes = take_bytes(length);
  if (!error_.empty()) return;
  const bool is_negative = !bytes.empty() && static_cast<signed char>(bytes.back()) < 0;
  for (std::size_t place = 0; place < sizeof value; ++place) {
    const std::uint64_t byte =
        place < bytes.size() ? static_cast<unsigned char>(bytes[place]) : (is_negative ? 0xffU : 0U);
    value |= byte << (8 * place);
  }
  integer(value);
}

void PickleMachine::push(Pickle::Kind kind, std::uint64_t bits, std::uint32_t length) {
  if (data_.values_.size() == Pickle::kMostValues) return fail("more than 2097152 values");
  data_.values_.push_back({kind, length, bits});
  push(static_cast<Pickle::Ref>(data_.values_.size() - 1));
}

void PickleMachine::push_bytes(Pickle::Kind kind, std::uint64_t length) {
  if (length > std::numeric_limits<std::uint32_t>::max()) return fail("the pickle ends early");
  const std::size_t place = data_.bytes_.size() - rest_.size();
  take_bytes(length);
  if (error_.empty()) push(kind, place, static_cast<std::uint32_t>(length));
}

void PickleMachine::push(Pickle::Ref value) {
  if (stack_.size() == Pickle::kMostStack) return fail("more than 262144 values on the stack");
  stack_.push_back(value);
}

std::size_t PickleMachine::since_mark() {
  if (marks_.empty() || marks_.back() > stack_.size()) return fail("no mark"), 0;
  const std::size_t count = stack_.size() - marks_.back();
  marks_.pop_back();
  return count;
}

void PickleMachine::make(Pickle::Kind kind, std::size_t count) {
  if (!error_.empty()) return;
  if (count > stack_.size()) return fail("too few values");
  push(kind, 0);
  if (!error_.empty()) return;
  std::rotate(stack_.end() - static_cast<std::ptrdiff_t>(count) - 1, stack_.end() - 1, stack_.end());
  add(kind, count);
}

void PickleMachine::add(Pickle::Kind kind, std::size_t count) {
  if (!error_.empty()) return;
  if (stack_.size() <= count) return fail("too few values");
  if (kind == Pickle::Kind::dict && count % 2 != 0) return fail("a key without a value");
  if (data_.members_.size() + count > Pickle::kMostMembers) return fail("more than 4194304 members");
  const std::size_t begin = stack_.size() - count;
  Pickle::Value& container = data_.values_[stack_[begin - 1]];
  if (container.kind != kind) return fail("no container for the values");
  auto first = static_cast<std::uint32_t>(container.bits);
  auto last = static_cast<std::uint32_t>(container.bits >> 32U);
  for (std::size_t at = begin; at < stack_.size(); ++at) {
    const auto fresh = static_cast<std::uint32_t>(data_.members_.size());
    data_.members_.push_back({stack_[at], 0});
    if (first == 0) first = fresh;
    if (last != 0) data_.members_[last].next = fresh;
    last = fresh;
  }
  container.bits = static_cast<std::uint64_t>(last) << 32U | first;
  stack_.resize(begin);
}

void PickleMachine::put(std::uint64_t place) {
  if (stack_.empty()) return fail("too few values");
  if (place >= Pickle::kMostMemo) return fail("more than 1048576 places of the memo");
  if (place >= memo_.size()) memo_.resize(place + 1, kNowhere);
  memo_[place] = stack_.back();
}

void PickleMachine::get(std::uint64_t place) {
  if (place >= memo_.size() || memo_[place] == kNowhere) return fail("nothing at the memo's place");
  push(memo_[place]);
}

void PickleMachine::fail(std::string what) {
  if (error_.empty()) error_ = std::move(what);
}

}  // namespace gpumeter::nccl
