#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collectors/nccl/files/pickle.hpp"

namespace gpumeter::nccl {

/// Runs one pickle. The first failure ends it. One thread.
class PickleMachine {
 public:
  explicit PickleMachine(std::string_view bytes) : data_(bytes), rest_(bytes) {}

  Result<Pickle> run();

  /// How the length or value that follows an opcode is stored; little-endian but for a double.
  enum class Argument : std::uint8_t {
    none,
    byte,
    two_bytes,
    four_bytes,
    eight_bytes,
    signed_four_bytes,
    big_endian
  };
  struct Opcode {
    unsigned char code;
    std::string_view name;
    Argument argument;
    void (PickleMachine::*act)(std::uint64_t argument);  ///< null: refused
  };
  /// Null: a byte that is no opcode of data, and has no name here.
  static const Opcode* opcode_of(unsigned char code) noexcept;

  void protocol(std::uint64_t version);
  void frame(std::uint64_t) {}  // a hint for readers of streams
  void stop(std::uint64_t);
  void mark(std::uint64_t);
  void none(std::uint64_t) { push(Pickle::Kind::none, 0); }
  void yes(std::uint64_t) { push(Pickle::Kind::boolean, 1); }
  void no(std::uint64_t) { push(Pickle::Kind::boolean, 0); }
  void integer(std::uint64_t bits) { push(Pickle::Kind::integer, bits); }
  void real(std::uint64_t bits) { push(Pickle::Kind::real, bits); }
  void long_integer(std::uint64_t length);
  void text(std::uint64_t length) { push_bytes(Pickle::Kind::text, length); }
  void bytes(std::uint64_t length) { push_bytes(Pickle::Kind::bytes, length); }
  void empty_list(std::uint64_t) { push(Pickle::Kind::list, 0); }
  void empty_tuple(std::uint64_t) { push(Pickle::Kind::tuple, 0); }
  void empty_dict(std::uint64_t) { push(Pickle::Kind::dict, 0); }
  void append(std::uint64_t) { add(Pickle::Kind::list, 1); }
  void appends(std::uint64_t) { add(Pickle::Kind::list, since_mark()); }
  void set_item(std::uint64_t) { add(Pickle::Kind::dict, 2); }
  void set_items(std::uint64_t) { add(Pickle::Kind::dict, since_mark()); }
  void list(std::uint64_t) { make(Pickle::Kind::list, since_mark()); }
  void tuple(std::uint64_t) { make(Pickle::Kind::tuple, since_mark()); }
  void tuple1(std::uint64_t) { make(Pickle::Kind::tuple, 1); }
  void tuple2(std::uint64_t) { make(Pickle::Kind::tuple, 2); }
  void tuple3(std::uint64_t) { make(Pickle::Kind::tuple, 3); }
  void dict(std::uint64_t) { make(Pickle::Kind::dict, since_mark()); }
  void put(std::uint64_t place);
  void memoize(std::uint64_t) { put(memo_.size()); }
  void get(std::uint64_t place);

 private:
  void step();
  std::uint64_t take(Argument argument);
  std::string_view take_bytes(std::uint64_t length);
  void push(Pickle::Kind kind, std::uint64_t bits, std::uint32_t length = 0);
  void push_bytes(Pickle::Kind kind, std::uint64_t length);
  void push(Pickle::Ref value);
  /// The number of values above the last mark, which is removed.
  std::size_t since_mark();
  /// Makes a container of the last `count` values.
  void make(Pickle::Kind kind, std::size_t count);
  /// Moves the last `count` values into the container below them.
  void add(Pickle::Kind kind, std::size_t count);
  void fail(std::string what);

  Pickle data_;
  std::string_view rest_;
  std::vector<Pickle::Ref> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Pickle::Ref> memo_;  // kNowhere: no value at this place
  std::string_view opcode_;
  std::size_t offset_ = 0;  // of the opcode
  bool is_over_ = false;
  std::string error_;
};

}  // namespace gpumeter::nccl
