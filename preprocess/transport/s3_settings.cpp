// SPDX-License-Identifier: Apache-2.0
#include "preprocess/transport/s3_settings.hpp"

#include <fstream>
#include <iterator>
#include <map>

#include "core/errors.hpp"
#include "core/text.hpp"
#include "options/command_line.hpp"

namespace convoy::preparation {
namespace {

/// `name = value` of one section of an INI file; an empty map where file or section is missing.
std::map<std::string, std::string> read_section(const std::string& path, const std::string& section) {
  std::map<std::string, std::string> values;
  std::ifstream file(path);
  for (const IniLine& line : ini_lines(plain_text({std::istreambuf_iterator<char>(file), {}}, path, Exit::usage))) {
    // Indented lines belong to nested settings, which are of no use here.
    if (line.section == section && !line.key.empty() && !line.indented) values[line.key] = line.value;
  }
  return values;
}

}  // namespace

S3Settings find_s3_settings(const TransferSpec& spec, const std::function<std::string(const char*)>& environment) {
  const auto first = [&](std::initializer_list<std::string> candidates) {
    for (const auto& text : candidates) {
      if (!text.empty()) return text;
    }
    return std::string();
  };
  const std::string home = environment("HOME");
  const std::string profile = first({environment("AWS_PROFILE"), environment("AWS_DEFAULT_PROFILE"), "default"});
  const std::string credentials_path = first({environment("AWS_SHARED_CREDENTIALS_FILE"), home + "/.aws/credentials"});
  const std::string config_path = first({environment("AWS_CONFIG_FILE"), home + "/.aws/config"});
  auto credentials = read_section(credentials_path, profile);
  auto config = read_section(config_path, profile == "default" ? profile : "profile " + profile);

  S3Settings settings;
  settings.identity.region =
      first({spec.region, environment("AWS_REGION"), environment("AWS_DEFAULT_REGION"), config["region"], "us-east-1"});
  settings.endpoint = first(
      {spec.endpoint, environment("AWS_ENDPOINT_URL_S3"), environment("AWS_ENDPOINT_URL"), config["endpoint_url"]});
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  if (!settings.endpoint.empty() && settings.endpoint.find("://") == std::string::npos) {
    settings.endpoint = "https://" + settings.endpoint;
  }
  if (spec.anonymous) return settings;
  if (!environment("AWS_ACCESS_KEY_ID").empty()) {
    settings.identity.key = environment("AWS_ACCESS_KEY_ID");
    settings.identity.secret = environment("AWS_SECRET_ACCESS_KEY");
    settings.identity.token = environment("AWS_SESSION_TOKEN");
  } else {
    auto& from = credentials.contains("aws_access_key_id") ? credentials : config;
    settings.identity.key = from["aws_access_key_id"];
    settings.identity.secret = from["aws_secret_access_key"];
    settings.identity.token = from["aws_session_token"];
  }
  if (settings.identity.key.empty() || settings.identity.secret.empty()) {
    fail(
        Exit::usage,
        "no credentials for S3 (neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY nor profile '{}' in '{}'); set them, or give --anonymous for a public bucket",
        profile, credentials_path);
  }
  return settings;
}

}  // namespace convoy::preparation
