#include "exporter/access/credentials.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

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
