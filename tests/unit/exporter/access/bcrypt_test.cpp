#include "exporter/access/bcrypt.hpp"

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

}  // namespace
}  // namespace gpumeter
