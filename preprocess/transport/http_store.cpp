// SPDX-License-Identifier: Apache-2.0
#include "preprocess/transport/http_store.hpp"

#include <algorithm>

#include "core/errors.hpp"
#include "preprocess/transport/http_client.hpp"

namespace convoy::preparation {
namespace {

/// An address as people write it, with spaces and letters that must be encoded; what is encoded already stays.
std::string encode_address(const std::string& address) {
  std::string encoded;
  for (const char c : address)
    encoded += c <= ' ' || c > '~' ? percent_encode({&c, 1}, Slashes::keep) : std::string(1, c);
  return encoded;
}

class HttpStore final : public Store {
 public:
  HttpStore(const Location& location, const TransferSpec& spec)
      : base_(encode_address(join_names(location.root, location.path))), client_(spec, {}) {}

  Listing list(const std::string& folder) override {
    std::string url = address(folder);
    if (!url.ends_with('/')) url += '/';
    const HttpAnswer page = client_.get(url);
    Listing listing = parse_index_page(page.body);
    if (listing.objects.empty() && listing.folders.empty()) {
      fail(
          Exit::data,
          "'{}' gives no index of files; switch the server's index on (nginx: autoindex), or name the files: https://HOST/PATH/name-{{000..127}}.tar",
          url);
    }
    return listing;
  }

  ObjectInfo look_up(const std::string& name) override {
    const HttpAnswer answer = client_.head(address(name));
    return {name, answer.object_bytes, answer.version};
  }

  std::unique_ptr<ByteStream> open(const std::string& name, const ByteRange& range) override {
    return client_.stream(address(name), range);
  }
  std::string address(const std::string& name) const override {
    return join_names(base_, percent_encode(name, Slashes::keep));
  }
  std::size_t streams_ahead() const override { return 16; }

 private:
  std::string base_;
  HttpClient client_;
};

/// The value of the next href, from `at` on, which is moved behind it.
bool next_link(const std::string& html, std::size_t& at, std::string& link) {
  at = html.find("href=", at);
  if (at == std::string::npos) return false;
  at += 5;
  const char quote = at < html.size() ? html[at] : '\0';
  if (quote != '"' && quote != '\'') return true;
  const auto end = html.find(quote, at + 1);
  if (end == std::string::npos) return false;
  link = html.substr(at + 1, end - at - 1);
  at = end;
  return true;
}

}  // namespace

Listing parse_index_page(const std::string& html) {
  Listing listing;
  std::size_t at = 0;
  for (std::string link; next_link(html, at, link); link.clear()) {
    if (link.starts_with("./")) link.erase(0, 2);
    // Parents, sorting links, other places.
    if (link.empty() || link.front() == '/' || link.front() == '?' || link.front() == '#' || link.starts_with("..") ||
        link.find("://") != std::string::npos || link.starts_with("mailto:")) {
      continue;
    }
    for (auto amp = link.find("&amp;"); amp != std::string::npos; amp = link.find("&amp;")) link.erase(amp + 1, 4);
    std::string name = percent_decode(link);
    if (name.back() == '/') {
      name.pop_back();
      if (!name.empty() && name.find('/') == std::string::npos) listing.folders.push_back(name);
    } else if (name.find('/') == std::string::npos) {
      listing.objects.push_back({name, -1, ""});
    }
  }
  std::sort(listing.folders.begin(), listing.folders.end());
  listing.folders.erase(std::unique(listing.folders.begin(), listing.folders.end()), listing.folders.end());
  std::sort(listing.objects.begin(), listing.objects.end(),
            [](const ObjectInfo& a, const ObjectInfo& b) { return a.name < b.name; });
  const auto same = [](const ObjectInfo& a, const ObjectInfo& b) { return a.name == b.name; };
  listing.objects.erase(std::unique(listing.objects.begin(), listing.objects.end(), same), listing.objects.end());
  return listing;
}

std::unique_ptr<Store> open_http_store(const Location& location, const TransferSpec& spec) {
  return std::make_unique<HttpStore>(location, spec);
}

}  // namespace convoy::preparation
