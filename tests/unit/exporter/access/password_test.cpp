#include "exporter/access/password.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

const std::string kDave = "$2y$10$2UXri9cIDdgeKjBo4Rlpx.U3ZLDV8X1IxKmsfOvhcM5oXQt/mLmXq";  // dave123

TEST(Bcrypt, ReadsTheCost) {
  EXPECT_EQ(*bcrypt_cost(kDave), 10U);
  for (const char letter : {'a', 'b', 'x', 'y'}) {
    std::string hash = kDave;
    hash[2] = letter;
    EXPECT_TRUE(bcrypt_cost(hash)) << hash;
  }
}

TEST(Bcrypt, RejectsOtherForms) {
  const auto changed = [](std::size_t at, char c) {
    std::string hash = kDave;
    hash[at] = c;
    return hash;
  };
  for (const std::string& hash : {std::string(), kDave.substr(1), kDave + "A", changed(0, '!'),
                                  changed(1, '1'), changed(2, 'z'), changed(3, '.'), changed(5, ' '),
                                  changed(6, '.'), changed(20, '$'), changed(59, '\n'), changed(59, '\0')}) {
    EXPECT_FALSE(bcrypt_cost(hash)) << hash;
  }
}

TEST(Bcrypt, ComparesPasswords) {
  EXPECT_EQ(bcrypt_matches("dave123", kDave), true);
  EXPECT_EQ(bcrypt_matches("dave124", kDave), false);
  EXPECT_EQ(bcrypt_matches("", kDave), false);
  EXPECT_EQ(bcrypt_matches(std::string(600, 'x'), kDave), false);  // longer than crypt(3) accepts
  EXPECT_EQ(bcrypt_matches("x", "no hash"), false);
}

TEST(Bcrypt, HasADummyOfEachCost) {
  EXPECT_EQ(dummy_bcrypt_hash(4), "$2y$04$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi");
  EXPECT_EQ(*bcrypt_cost(dummy_bcrypt_hash(14)), 14U);
  EXPECT_EQ(bcrypt_matches("fakepassword", dummy_bcrypt_hash(10)), true);  // as in exporter-toolkit
}

using namespace std::string_literals;

std::string parsed(std::string_view header) {
  const auto credentials = parse_basic_credentials(header);
  return credentials ? credentials->user + "|" + credentials->password : "invalid";
}

TEST(Credentials, AcceptsBasic) {
  EXPECT_EQ(parsed("Basic ZGF2ZTpkYXZlMTIz"), "dave|dave123");
  EXPECT_EQ(parsed("bAsIc   ZGF2ZTpkYXZlMTIz"), "dave|dave123");
  EXPECT_EQ(parsed("Basic ZGF2ZTpkYXZlMQ=="), "dave|dave1");
  EXPECT_EQ(parsed("Basic ZGF2ZTpkYXZlMTI="), "dave|dave12");
  EXPECT_EQ(parsed("Basic YTpiOmM="), "a|b:c");  // only the first colon separates
  EXPECT_EQ(parsed("Basic Og=="), "|");
  EXPECT_EQ(parsed("Basic w6Q6w7Y="), "\u00e4|\u00f6");
}

TEST(Credentials, RejectsOtherTexts) {
  for (const std::string& header :
       {""s, "Basic"s, "Basic "s, "Basic   "s, "BasicZGF2ZTpkYXZlMTIz"s, "Bearer ZGF2ZTpkYXZlMTIz"s,
        "Basic\tZGF2ZTpkYXZlMTIz"s, "Basic ZGF2ZTpkYXZlMTIz "s, "Basic ZGF2ZTpkYXZlMQ="s,
        "Basic ZGF2ZTpkYXZlMQ"s,
        "Basic ZGF2ZTpkYXZlMR=="s,  // unused bits are not 0
        "Basic ZGF2ZTpkYXZl=TIz"s, "Basic ZGF2ZTpkYX-_MTIz"s, "Basic ===="s, "Basic ZGF2\0ZTpk"s,
        "Basic ZGF2ZQ=="s,     // no colon
        "Basic YTpiAGM="s,     // a password with NUL: bcrypt would compare "b" only
        "Basic YToKYg=="s}) {  // a line end
    EXPECT_EQ(parsed(header), "invalid") << header;
  }
}

}  // namespace
}  // namespace gpumeter
