#include "base/login.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace gpumeter {
namespace {

/// A file that is removed with the test.
class LoginFileTest : public testing::Test {
 protected:
  ~LoginFileTest() override { std::remove(path_.c_str()); }

  std::string read(const std::string& text, mode_t mode = 0640) {
    std::ofstream(path_) << text;
    chmod(path_.c_str(), mode);
    const Result<Login> login = read_login(path_);
    if (login) return login->user + " / " + login->password;
    const std::string& message = login.error().message();
    return message.starts_with(path_) ? "FILE" + message.substr(path_.size()) : message;
  }

  const std::string path_ = testing::TempDir() + "login-" + std::to_string(getpid());
};

TEST_F(LoginFileTest, HasTheUserAndThePasswordInItsFirstLine) {
  EXPECT_EQ(read("dave:secret\nmore\n"), "dave / secret");
  EXPECT_EQ(read("dave:with:colons and blanks \r\n"), "dave / with:colons and blanks ");
  EXPECT_EQ(read("dave:"), "dave / ");
}

TEST_F(LoginFileTest, IsRefusedWithoutAUserAndIfAllUsersCanReadIt) {
  for (const char* text : {"", "dave", "\ndave:x", ":x"}) {
    EXPECT_EQ(read(text), "FILE: its first line must be USER:PASSWORD") << text;
  }
  EXPECT_EQ(read("dave:x", 0644), "FILE has a password, and every user can read it (chmod o-r)");
  EXPECT_EQ(read_login("/nowhere/file").error().message(), "/nowhere/file: No such file or directory");
}

}  // namespace
}  // namespace gpumeter
