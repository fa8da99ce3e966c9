// SPDX-License-Identifier: Apache-2.0
#include "preprocess/transport/s3_store.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "core/errors.hpp"
#include "preprocess/transport/http_client.hpp"
#include "preprocess/transport/s3_settings.hpp"
#include "preprocess/transport/xml.hpp"

namespace convoy::preparation {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

class S3Store final : public Store {
 public:
  S3Store(const Location& location, const TransferSpec& spec, const S3Settings& settings)
      : bucket_(location.root), prefix_(location.path), client_(spec, settings.identity) {
    if (!settings.endpoint.empty()) {
      base_ = settings.endpoint + "/" + bucket_;
    } else if (bucket_.find('.') != std::string::npos) {  // a host name with more dots fits no certificate
      base_ = fmt::format("https://s3.{}.amazonaws.com/{}", settings.identity.region, bucket_);
    } else {
      base_ = fmt::format("https://{}.s3.{}.amazonaws.com", bucket_, settings.identity.region);
    }
  }

  Listing list(const std::string& folder) override {
    std::string prefix = join_names(prefix_, folder);
    if (!prefix.empty() && prefix.back() != '/') prefix += '/';
    Listing listing;
    std::string token;
    do {
      // Sorted by name, as the signature wants them.
      std::string query = token.empty() ? "" : "continuation-token=" + percent_encode(token, Slashes::encode) + "&";
      query +=
          "delimiter=%2F&encoding-type=url&list-type=2&max-keys=1000&prefix=" + percent_encode(prefix, Slashes::encode);
      const HttpAnswer page = client_.get(base_ + "/?" + query);
      take_page(page.body, prefix, listing);
      const std::string next = xml_text(page.body, "NextContinuationToken");
      if (xml_text(page.body, "IsTruncated") == "true" && (next.empty() || next == token)) {
        fail(Exit::data, "'{}': the list of objects breaks off (no continuation token); check the endpoint",
             address(folder));
      }
      token = next;
    } while (!token.empty());
    std::sort(listing.folders.begin(), listing.folders.end());
    std::sort(listing.objects.begin(), listing.objects.end(),
              [](const ObjectInfo& a, const ObjectInfo& b) { return a.name < b.name; });
    return listing;
  }

  ObjectInfo look_up(const std::string& name) override {
    const HttpAnswer answer = client_.head(url(name));
    return {name, answer.object_bytes, answer.version};
  }

  std::unique_ptr<ByteStream> open(const std::string& name, const ByteRange& range) override {
    return client_.stream(url(name), range);
  }
  std::string address(const std::string& name) const override {
    return "s3://" + join_names(join_names(bucket_, prefix_), name);
  }
  std::size_t streams_ahead() const override { return 16; }

 private:
  std::string url(const std::string& name) const {
    return base_ + "/" + percent_encode(join_names(prefix_, name), Slashes::keep);
  }

  static void take_page(const std::string& xml, const std::string& prefix, Listing& listing) {
    // Servers that don't know encoding-type don't confirm it. Those that do write spaces as forms do.
    const bool encoded = xml_text(xml, "EncodingType") == "url";
    const auto decode = [&](std::string name) {
      if (!encoded) return name;
      std::replace(name.begin(), name.end(), '+', ' ');
      return percent_decode(name);
    };
    for (const auto entry : xml_elements(xml, "Contents")) {
      const std::string key = decode(xml_text(entry, "Key"));
      if (!key.starts_with(prefix) || key.size() == prefix.size()) continue;  // the folder's own marker
      const std::string size = xml_text(entry, "Size");
      ObjectInfo object{key.substr(prefix.size()), -1, xml_text(entry, "ETag")};
      std::from_chars(size.data(), size.data() + size.size(), object.bytes);
      listing.objects.push_back(std::move(object));
    }
    for (const auto entry : xml_elements(xml, "CommonPrefixes")) {
      std::string folder = decode(xml_text(entry, "Prefix"));
      if (!folder.starts_with(prefix)) continue;
      folder.erase(0, prefix.size());
      if (folder.ends_with('/')) folder.pop_back();
      if (!folder.empty()) listing.folders.push_back(folder);
    }
  }

  std::string bucket_, prefix_, base_;
  HttpClient client_;
};

}  // namespace

std::unique_ptr<Store> open_s3_store(const Location& location, const TransferSpec& spec) {
  return std::make_unique<S3Store>(location, spec, find_s3_settings(spec, environment));
}

}  // namespace convoy::preparation
