#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gpumeter::nccl {

/// The data of a Python pickle, protocol 2 to 5, without Python. A pickle is a program for a stack machine,
/// whose opcodes can call any function of the reader's; this machine knows only those that build None,
/// booleans, numbers, texts, bytes, lists, tuples, dicts and references to them (Lib/pickletools.py). Every
/// other opcode is an Error with its name and offset, and nothing of the pickle is used. Nothing recurses.
/// The bytes must outlive this object. One thread.
class Pickle {
 public:
  using Ref = std::uint32_t;  ///< a value of this pickle
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, bytes, list, tuple, dict };

  /// Limits: a dump of 2,000 entries with 60 frames each has a million values and 16 MB.
  static constexpr std::size_t kMostValues = 2U << 20U;   ///< of 16 bytes
  static constexpr std::size_t kMostMembers = 4U << 20U;  ///< of lists, tuples and dicts; of 8 bytes
  static constexpr std::size_t kMostStack = 1U << 18U;
  static constexpr std::size_t kDeepest = 64;  ///< containers under construction within each other
  static constexpr std::size_t kMostMemo = 1U << 20U;
  /// A dict of a real dump has 22 keys. Lists may hold one dict often, so that a search must be short.
  static constexpr std::size_t kMostSought = 64;

  static Result<Pickle> parse(std::string_view bytes);

  Ref root() const noexcept { return root_; }
  Kind kind(Ref value) const noexcept { return values_[value].kind; }
  std::optional<std::int64_t> integer(Ref value) const noexcept;
  std::optional<std::string_view> text(Ref value) const noexcept;
  /// The value of a dict's key; nullopt: no dict, or no such key among the first kMostSought.
  std::optional<Ref> find(Ref dict, std::string_view key) const;
  /// The first `most` members of a list or tuple, or keys and values of a dict in turn; none of other values.
  std::vector<Ref> members(Ref container, std::size_t most) const;

 private:
  friend class PickleMachine;

  /// `bits`: the number, the place of a text in the bytes, or the last and the first member of a container.
  struct Value {
    Kind kind = Kind::none;
    std::uint32_t length = 0;  ///< of a text or bytes
    std::uint64_t bits = 0;
  };
  struct Member {
    Ref value;
    std::uint32_t next;  ///< 0: the last one
  };

  explicit Pickle(std::string_view bytes) : bytes_(bytes) {}

  std::string_view bytes_;
  std::vector<Value> values_;
  std::vector<Member> members_ = {{0, 0}};  ///< the first one stands for "none"
  Ref root_ = 0;
};

}  // namespace gpumeter::nccl
