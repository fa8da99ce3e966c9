// SPDX-License-Identifier: Apache-2.0
// Addresses, patterns, settings and lists, as texts: what servers are asked for and what is made of their answers.
#include <gtest/gtest.h>

#include <map>

#include "preprocess/transport/http_store.hpp"
#include "preprocess/transport/location.hpp"
#include "preprocess/transport/s3_settings.hpp"
#include "preprocess/transport/xml.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/temp_folder.hpp"

namespace convoy::preparation {
namespace {

using Words = std::vector<std::string>;

TEST(Location, HasSchemeRootAndPath) {
  const auto expect = [](const char* text, Scheme scheme, const char* root, const char* path) {
    const Location found = parse_location(text);
    EXPECT_EQ(found.scheme, scheme) << text;
    EXPECT_EQ(found.root, root) << text;
    EXPECT_EQ(found.path, path) << text;
  };
  expect("/data/x", Scheme::file, "", "/data/x");
  expect("a b", Scheme::file, "", "a b");
  expect("file:///data", Scheme::file, "", "/data");
  expect("s3://bucket", Scheme::s3, "bucket", "");
  expect("s3://bucket/a/b/", Scheme::s3, "bucket", "a/b/");
  expect("https://host:8443/a?b", Scheme::http, "https://host:8443", "a?b");
  for (const char* text : {"gs://bucket/x", "ftp://host/x", "://x", "s3:///x", "http://"}) {
    expect_error(Exit::usage, {"cannot read", text}, [&] { parse_location(text); });
  }
}

TEST(PlainPath, IsBelowOnePlace) {
  for (const char* path :
       {"a/b.jpg", "./a/b.jpg", "/a//b.jpg", "../../a/b.jpg", "a/./c/../b.jpg", "c/../../a/b.jpg", "a/b.jpg/"}) {
    EXPECT_EQ(plain_path(path), "a/b.jpg") << path;
  }
  for (const char* path : {"", ".", "..", "/", "a/..", "/../."}) EXPECT_EQ(plain_path(path), "") << path;
  EXPECT_EQ(plain_path("...a/.b/c.."), "...a/.b/c..");
}

TEST(Braces, AreRangesAndWords) {
  EXPECT_EQ(expand_braces("plain.tar"), Words{"plain.tar"});
  EXPECT_EQ(expand_braces("a{08..11}.tar"), (Words{"a08.tar", "a09.tar", "a10.tar", "a11.tar"}));
  EXPECT_EQ(expand_braces("{9..10}"), (Words{"9", "10"}));
  EXPECT_EQ(expand_braces("{a,b}-{0..1}"), (Words{"a-0", "a-1", "b-0", "b-1"}));
  EXPECT_EQ(expand_braces("x{a,}"), (Words{"xa", "x"}));
  EXPECT_EQ(expand_braces("{000000..001281}").size(), 1282U);
  for (const char* text : {"{a", "a}", "{}", "{a}", "{2..1}", "{a..b}", "{0..99999999}", "{-1..2}", "{1..}", "{..2}"}) {
    expect_error(Exit::usage, {"cannot expand", text}, [&] { expand_braces(text); });
  }
}

TEST(Percent, EncodesAllButUnreserved) {
  EXPECT_EQ(percent_encode("a/b c~-._", Slashes::keep), "a/b%20c~-._");
  EXPECT_EQ(percent_encode("a/b", Slashes::encode), "a%2Fb");
  EXPECT_EQ(percent_encode("\xc3\xbc+%", Slashes::keep), "%C3%BC%2B%25");
  EXPECT_EQ(percent_decode("%C3%BC%2b%25+%zz%4"), "\xc3\xbc+%+%zz%4");
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(percent_decode(percent_encode(all, Slashes::encode)), all);
}

TEST(IndexPage, GivesFilesAndFolders) {
  const Listing nginx = parse_index_page(
      "<a href=\"../\">../</a><a href=\"b%20c/\">b c/</a> - <a href=\"x&amp;y.tar\">x</a>\n<a href='a.jpg'>a</a>"
      "<a href=\"a.jpg\">again</a><a href=\"?C=M;O=A\">sort</a><a href=\"/\">top</a><a href=\"http://h/z\">z</a>"
      "<a href=\"#top\">t</a><a href=\"./d/\">d</a><a href=\"d/e.jpg\">below</a><a href=mailto:x>m</a>");
  EXPECT_EQ(nginx.folders, (Words{"b c", "d"}));
  ASSERT_EQ(nginx.objects.size(), 2U);
  EXPECT_EQ(nginx.objects[0].name, "a.jpg");
  EXPECT_EQ(nginx.objects[1].name, "x&y.tar");
  for (const char* broken : {"", "<a href=", "<a href=\"", "<a href=\"x", "href=\"\"", "<a href=\"&amp;\""}) {
    EXPECT_LE(parse_index_page(broken).objects.size(), 1U) << broken;
  }
}

TEST(Xml, FindsElementsAndEntities) {
  const std::string page =
      "<?xml version=\"1.0\"?><List xmlns=\"x\"><Contents><Key>a&amp;b&lt;&#47;</Key></Contents>"
      "<Contents><Key>c</Key></Contents><Code/></List>";
  const auto entries = xml_elements(page, "Contents");
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(xml_text(entries[0], "Key"), "a&b</");
  EXPECT_EQ(xml_text(entries[1], "Key"), "c");
  EXPECT_EQ(xml_text(page, "Code"), "");
  EXPECT_EQ(xml_text("<Key>cut", "Key"), "");
  EXPECT_TRUE(xml_elements("<Contents>", "Contents").empty());
}

/// Settings from variables and from profile files.
S3Settings settings_of(std::map<std::string, std::string> variables, const TransferSpec& spec = {}) {
  return find_s3_settings(spec, [&](const char* name) { return variables[name]; });
}

TEST(S3Settings, ComeFromTheEnvironment) {
  const S3Settings found = settings_of({{"AWS_ACCESS_KEY_ID", "k"},
                                        {"AWS_SECRET_ACCESS_KEY", "s"},
                                        {"AWS_SESSION_TOKEN", "t"},
                                        {"AWS_REGION", "eu-1"},
                                        {"AWS_ENDPOINT_URL", "minio:9000//"}});
  EXPECT_EQ(found.identity.key, "k");
  EXPECT_EQ(found.identity.secret, "s");
  EXPECT_EQ(found.identity.token, "t");
  EXPECT_EQ(found.identity.region, "eu-1");
  EXPECT_EQ(found.endpoint, "https://minio:9000");
  EXPECT_TRUE(settings_of({{"AWS_ACCESS_KEY_ID", "k"}}, {.anonymous = true}).identity.key.empty());
  expect_error(Exit::usage, {"no credentials for S3", "--anonymous"}, [] { settings_of({{"HOME", "/nonexistent"}}); });
}

TEST(S3Settings, ComeFromProfiles) {
  const TempFolder home;
  std::filesystem::create_directory(home / ".aws");
  write_bytes(home / ".aws/credentials",
              "\xEF\xBB\xBF[default]\n# comment\naws_access_key_id = d\naws_secret_access_key=ds\n\n[other]\n"
              "aws_access_key_id=o\naws_secret_access_key = os=1\naws_session_token = ot\n");
  write_bytes(
      home / ".aws/config",
      "[default]\nregion = eu-2\n[profile other]\nregion=us-9\nendpoint_url = http://h:1/\ns3 =\n  region = no\n");
  const S3Settings usual = settings_of({{"HOME", home.path()}});
  EXPECT_EQ(usual.identity.key + " " + usual.identity.secret + " " + usual.identity.region, "d ds eu-2");
  EXPECT_EQ(usual.endpoint, "");
  const S3Settings other = settings_of({{"HOME", home.path()}, {"AWS_PROFILE", "other"}});
  EXPECT_EQ(other.identity.key + " " + other.identity.secret + " " + other.identity.token, "o os=1 ot");
  EXPECT_EQ(other.identity.region + " " + other.endpoint, "us-9 http://h:1");
  expect_error(Exit::usage, {"profile 'third'"}, [&] {
    settings_of({{"HOME", home.path()}, {"AWS_PROFILE", "third"}});
  });
  const TransferSpec asked{.endpoint = "http://mine", .region = "r"};
  const S3Settings given = settings_of({{"HOME", home.path()}, {"AWS_ENDPOINT_URL", "http://theirs"}}, asked);
  EXPECT_EQ(given.endpoint + " " + given.identity.region, "http://mine r");
}

}  // namespace
}  // namespace convoy::preparation
