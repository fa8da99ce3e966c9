// SPDX-License-Identifier: Apache-2.0
#include "io/folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/expect_error.hpp"
#include "support/file_bytes.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

TEST(MakeFolder, WithThoseAboveIt) {
  const TempFolder folder;
  const std::string made = folder / "a/b/c";
  make_folder(made, "not said");
  EXPECT_TRUE(std::filesystem::is_directory(made));
  make_folder(made, "not said");
  write_bytes(folder / "file", "");
  for (const std::string& path : {folder / "file", folder / "file/below"})
    expect_error(Exit::data, {"cannot make the folder '" + path + "' (", "); choose another"},
                 [&] { make_folder(path, "choose another"); });
}

}  // namespace
}  // namespace convoy
