#include <array>

#include "collectors/nccl/files/pickle_machine.hpp"

namespace gpumeter::nccl {
namespace {

using Machine = PickleMachine;
using Argument = PickleMachine::Argument;

// clang-format off
constexpr Machine::Opcode kOpcodes[] = {
    {0x80, "PROTO", Argument::byte, &Machine::protocol},
    {0x95, "FRAME", Argument::eight_bytes, &Machine::frame},
    {'.', "STOP", Argument::none, &Machine::stop},
    {'(', "MARK", Argument::none, &Machine::mark},
    {'N', "NONE", Argument::none, &Machine::none},
    {0x88, "NEWTRUE", Argument::none, &Machine::yes},
    {0x89, "NEWFALSE", Argument::none, &Machine::no},
    {'K', "BININT1", Argument::byte, &Machine::integer},
    {'M', "BININT2", Argument::two_bytes, &Machine::integer},
    {'J', "BININT", Argument::signed_four_bytes, &Machine::integer},
    {0x8a, "LONG1", Argument::byte, &Machine::long_integer},
    {0x8b, "LONG4", Argument::four_bytes, &Machine::long_integer},
    {'G', "BINFLOAT", Argument::big_endian, &Machine::real},
    {0x8c, "SHORT_BINUNICODE", Argument::byte, &Machine::text},
    {'X', "BINUNICODE", Argument::four_bytes, &Machine::text},
    {0x8d, "BINUNICODE8", Argument::eight_bytes, &Machine::text},
    {'C', "SHORT_BINBYTES", Argument::byte, &Machine::bytes},
    {'B', "BINBYTES", Argument::four_bytes, &Machine::bytes},
    {0x8e, "BINBYTES8", Argument::eight_bytes, &Machine::bytes},
    {']', "EMPTY_LIST", Argument::none, &Machine::empty_list},
    {'a', "APPEND", Argument::none, &Machine::append},
    {'e', "APPENDS", Argument::none, &Machine::appends},
    {'l', "LIST", Argument::none, &Machine::list},
    {')', "EMPTY_TUPLE", Argument::none, &Machine::empty_tuple},
    {0x85, "TUPLE1", Argument::none, &Machine::tuple1},
    {0x86, "TUPLE2", Argument::none, &Machine::tuple2},
    {0x87, "TUPLE3", Argument::none, &Machine::tuple3},
    {'t', "TUPLE", Argument::none, &Machine::tuple},
    {'}', "EMPTY_DICT", Argument::none, &Machine::empty_dict},
    {'s', "SETITEM", Argument::none, &Machine::set_item},
    {'u', "SETITEMS", Argument::none, &Machine::set_items},
    {'d', "DICT", Argument::none, &Machine::dict},
    {'q', "BINPUT", Argument::byte, &Machine::put},
    {'r', "LONG_BINPUT", Argument::four_bytes, &Machine::put},
    {0x94, "MEMOIZE", Argument::none, &Machine::memoize},
    {'h', "BINGET", Argument::byte, &Machine::get},
    {'j', "LONG_BINGET", Argument::four_bytes, &Machine::get},
    // Refused. The names are for the message; an opcode that is not here is refused too.
    {'c', "GLOBAL", Argument::none, nullptr},
    {0x93, "STACK_GLOBAL", Argument::none, nullptr},
    {'R', "REDUCE", Argument::none, nullptr},
    {'b', "BUILD", Argument::none, nullptr},
    {'i', "INST", Argument::none, nullptr},
    {'o', "OBJ", Argument::none, nullptr},
    {0x81, "NEWOBJ", Argument::none, nullptr},
    {0x92, "NEWOBJ_EX", Argument::none, nullptr},
    {0x82, "EXT1", Argument::none, nullptr},
    {0x83, "EXT2", Argument::none, nullptr},
    {0x84, "EXT4", Argument::none, nullptr},
    {'P', "PERSID", Argument::none, nullptr},
    {'Q', "BINPERSID", Argument::none, nullptr},
};
// clang-format on

/// The opcodes by their byte.
constexpr auto kByCode = [] {
  std::array<const Machine::Opcode*, 256> table{};
  for (const Machine::Opcode& each : kOpcodes) table[each.code] = &each;
  return table;
}();

}  // namespace

const PickleMachine::Opcode* PickleMachine::opcode_of(unsigned char code) noexcept { return kByCode[code]; }

}  // namespace gpumeter::nccl
