#include "collectors/nccl/files/pickle.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpumeter::nccl {
namespace {

using std::string_literals::operator""s;

/// The value as Python prints it.
std::string shown(const Pickle& pickle, Pickle::Ref value) {
  const auto joined = [&](const char* open, const char* close) {
    std::string out = open;
    for (const Pickle::Ref member : pickle.members(value, 100)) {
      out += (out.size() > 1 ? "," : "") + shown(pickle, member);
    }
    return out + close;
  };
  switch (pickle.kind(value)) {
    case Pickle::Kind::none:
      return "None";
    case Pickle::Kind::boolean:
      return "bool";
    case Pickle::Kind::integer:
      return std::to_string(*pickle.integer(value));
    case Pickle::Kind::real:
      return "real";
    case Pickle::Kind::text:
      return "'" + std::string(*pickle.text(value)) + "'";
    case Pickle::Kind::bytes:
      return "bytes";
    case Pickle::Kind::list:
      return joined("[", "]");
    case Pickle::Kind::tuple:
      return joined("(", ")");
    case Pickle::Kind::dict:
      return joined("{", "}");
  }
  return "?";
}

/// The data of the opcodes after PROTO, or the error.
std::string parsed(const std::string& opcodes, char protocol = 2) {
  const std::string bytes = "\x80"s + protocol + opcodes;
  const Result<Pickle> pickle = Pickle::parse(bytes);
  return pickle ? shown(*pickle, pickle->root()) : pickle.error().message();
}

TEST(Pickle, ReadsData) {
  EXPECT_EQ(parsed("N."), "None");
  EXPECT_EQ(parsed("K\x07."), "7");
  EXPECT_EQ(parsed("M\x01\x02."), "513");
  EXPECT_EQ(parsed("J\xff\xff\xff\xff."), "-1");
  EXPECT_EQ(parsed("\x8a\x00."s), "0");
  EXPECT_EQ(parsed("\x8a\x01\x80."s), "-128");
  EXPECT_EQ(parsed("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."s), "-9223372036854775808");
  EXPECT_EQ(parsed("X\x02\x00\x00\x00hi."s), "'hi'");
  EXPECT_EQ(parsed("\x8c\x02hi.", 4), "'hi'");
  EXPECT_EQ(parsed("(K\x01K\x02\x88t."), "(1,2,bool)");
  EXPECT_EQ(parsed("K\x01K\x02\x86."), "(1,2)");
  EXPECT_EQ(parsed("]q\x00(K\x01K\x02"
                   "eh\x00\x86."s),
            "([1,2],[1,2])");
  EXPECT_EQ(parsed("}K\x01NsK\x03K\x04s."), "{1,None,3,4}");
  EXPECT_EQ(parsed("](K\x01"
                   "eK\x02"
                   "a."),
            "[1,2]");
}

// The same data by other protocols of Python: FRAME, MEMOIZE and short texts.
TEST(Pickle, ReadsProtocol4) {
  EXPECT_EQ(parsed("\x95\x11\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
                   "a\x94K\x01\x8c\x01"
                   "b\x94]\x94h\x01"
                   "au."s,
                   4),
            "{'a',1,'b',['a']}");
}

// What "import os; os.system" needs, and what protocol 4 uses for it.
TEST(Pickle, RefusesEverythingThatIsNoData) {
  EXPECT_EQ(parsed("cos\nsystem\n(X\x02\x00\x00\x00idtR."s),
            "byte 2: opcode GLOBAL is refused, only data is read");
  EXPECT_EQ(parsed("\x8c\x02os\x8c\x06system\x93.", 4),
            "byte 14: opcode STACK_GLOBAL is refused, only data is read");
  EXPECT_EQ(parsed("N)R."), "byte 4: opcode REDUCE is refused, only data is read");
  EXPECT_EQ(parsed("N}b."), "byte 4: opcode BUILD is refused, only data is read");
  EXPECT_EQ(parsed("(ios\nsystem\n."), "byte 3: opcode INST is refused, only data is read");
  EXPECT_EQ(parsed("N)\x81."), "byte 4: opcode NEWOBJ is refused, only data is read");
  EXPECT_EQ(parsed("Pid\n."), "byte 2: opcode PERSID is refused, only data is read");
  EXPECT_EQ(parsed("\xff."), "byte 2: opcode 0xff is refused, only data is read");
}

TEST(Pickle, NamesWhatIsWrongAndWhere) {
  EXPECT_EQ(Pickle::parse("").error().message(), "byte 0: the pickle ends early");
  EXPECT_EQ(Pickle::parse("(lp0\n.").error().message(),
            "byte 0: a pickle of protocol 2 to 5 begins with PROTO, not 0x28");
  EXPECT_EQ(parsed("N.", 6), "byte 0: protocol 6 is not one from 2 to 5 at the start");
  EXPECT_EQ(parsed("N\x80\x02."), "byte 3: protocol 2 is not one from 2 to 5 at the start");
  EXPECT_EQ(parsed("X\x05\x00\x00\x00hi."s), "byte 2: the pickle ends early");
  EXPECT_EQ(parsed("]K\x01"), "byte 5: the pickle ends early");
  EXPECT_EQ(parsed("NN."), "byte 4: STOP with 2 values");
  EXPECT_EQ(parsed("."), "byte 2: STOP with 0 values");
  EXPECT_EQ(parsed("h\x05."), "byte 2: nothing at the memo's place");
  EXPECT_EQ(parsed("]u."), "byte 3: no mark");
  EXPECT_EQ(parsed("}(Nu."), "byte 5: a key without a value");
  EXPECT_EQ(parsed("NNa."), "byte 4: no container for the values");
  EXPECT_EQ(parsed("a."), "byte 2: too few values");
  EXPECT_EQ(parsed("\x87."), "byte 2: too few values");
  EXPECT_EQ(parsed("\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01."s),
            "byte 2: an integer of more than 64 bits");
}

TEST(Pickle, IsBounded) {
  EXPECT_EQ(parsed(std::string(65, '(')), "byte 66: more than 64 open containers");
  EXPECT_EQ(parsed(std::string(300'000, 'N')), "byte 262146: more than 262144 values on the stack");
  EXPECT_EQ(parsed("Nr\xff\xff\xff\xff."), "byte 3: more than 1048576 places of the memo");
  std::string many = "]";
  for (std::size_t at = 0; at <= Pickle::kMostValues; ++at) many += "Na";
  EXPECT_EQ(parsed(many), "byte 4194305: more than 2097152 values");
}

// A list within itself, which Python can write.
TEST(Pickle, ACycleEndsNothing) {
  const std::string bytes =
      "\x80\x02]q\x00h\x00"
      "a."s;
  const Result<Pickle> pickle = Pickle::parse(bytes);
  ASSERT_TRUE(pickle);
  const auto members = pickle->members(pickle->root(), 9);
  EXPECT_EQ(members, std::vector<Pickle::Ref>{pickle->root()});
}

}  // namespace
}  // namespace gpumeter::nccl
