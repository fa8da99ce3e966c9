// SPDX-License-Identifier: Apache-2.0
#include "preprocess/transport/http_transfer.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/errors.hpp"
#include "core/version.hpp"
#include "preprocess/transport/location.hpp"

namespace convoy::preparation {
namespace {

constexpr std::size_t most_buffered = std::size_t{4} << 20;
constexpr std::size_t longest_refusal = std::size_t{1} << 16;
/// The digest of an empty body, which every GET has.
constexpr const char* empty_sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

Index number_in(const std::string& text) {
  Index value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

void require_curl() {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) fail(Exit::device, "cannot start libcurl ({})", curl_easy_strerror(ready));
}

namespace {

/// Certificates of authorities that a site runs itself, as the usual programs find them; null: the system's alone.
const char* certificate_bundle() {
  for (const char* name : {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return nullptr;
}

}  // namespace

HttpTransfer::HttpTransfer(CURLM* multi, const HttpRequest& request, const S3Identity& identity, double timeout_seconds)
    : multi_(multi), easy_(curl_easy_init()), request_(request) {
  if (easy_ == nullptr) fail(Exit::device, "cannot make a transfer (libcurl gave no handle)");
  curl_easy_setopt(easy_, CURLOPT_URL, request_.url.c_str());
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, reason_.data());
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_FOLLOWLOCATION, identity.key.empty() ? 1L : 0L);  // a signature is for one address
  curl_easy_setopt(easy_, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(easy_, CURLOPT_PATH_AS_IS, 1L);  // keys of S3 may hold `..`
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(timeout_seconds * 1000));
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  if (const char* bundle = certificate_bundle()) curl_easy_setopt(easy_, CURLOPT_CAINFO, bundle);
  curl_easy_setopt(easy_, CURLOPT_USERAGENT, fmt::format("convoy-preprocess/{}", version()).c_str());
  if (request_.head) curl_easy_setopt(easy_, CURLOPT_NOBODY, 1L);
  if (request_.begin > 0 || request_.end >= 0) {
    const std::string range =
        fmt::format("{}-{}", request_.begin, request_.end < 0 ? "" : std::to_string(request_.end - 1));
    curl_easy_setopt(easy_, CURLOPT_RANGE, range.c_str());
  }
  if (!identity.key.empty()) {
    curl_easy_setopt(easy_, CURLOPT_AWS_SIGV4, fmt::format("aws:amz:{}:s3", identity.region).c_str());
    curl_easy_setopt(easy_, CURLOPT_USERPWD, fmt::format("{}:{}", identity.key, identity.secret).c_str());
    // libcurl 7.88 signs the hash but doesn't send it, and S3 insists.
    headers_ = curl_slist_append(headers_, fmt::format("x-amz-content-sha256: {}", empty_sha256).c_str());
    if (!identity.token.empty()) {
      headers_ = curl_slist_append(headers_, fmt::format("x-amz-security-token: {}", identity.token).c_str());
    }
    curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
  }
  curl_multi_add_handle(multi_, easy_);
}

HttpTransfer::~HttpTransfer() {
  curl_multi_remove_handle(multi_, easy_);
  curl_easy_cleanup(easy_);
  curl_slist_free_all(headers_);
}

std::size_t HttpTransfer::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  HttpTransfer& t = *static_cast<HttpTransfer*>(self);
  const std::size_t bytes = size * count;
  t.headers_done_ = true;
  if (t.answer_.status != 200 && t.answer_.status != 206) {
    if (t.answer_.body.size() < longest_refusal) t.answer_.body.append(data, bytes);
    return bytes;
  }
  if (t.buffer_.size() - t.used_ > most_buffered) {
    t.paused_ = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  if (t.used_ > t.buffer_.size() / 2) {  // seldom: it moves the rest
    t.buffer_.erase(t.buffer_.begin(), t.buffer_.begin() + static_cast<std::ptrdiff_t>(t.used_));
    t.used_ = 0;
  }
  t.buffer_.insert(t.buffer_.end(), data, data + bytes);
  t.received_ += static_cast<Index>(bytes);
  return bytes;
}

std::size_t HttpTransfer::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  static_cast<HttpTransfer*>(self)->take_header(std::string(data, size * count));
  return size * count;
}

void HttpTransfer::take_header(const std::string& line) {
  if (line.starts_with("HTTP/")) {  // of a redirection or of the answer itself: the last one counts
    const auto space = line.find(' ');
    answer_ = {};
    modified_.clear();
    if (space != std::string::npos) answer_.status = static_cast<long>(number_in(line.substr(space + 1)));
    return;
  }
  if (line.find_first_not_of("\r\n") == std::string::npos) {
    if (answer_.version.empty()) answer_.version = modified_;
    if (answer_.object_bytes < 0 && answer_.status == 200) answer_.object_bytes = answer_.content_bytes;
    return;
  }
  const auto colon = line.find(':');
  if (colon == std::string::npos) return;
  const std::string name = lower(line.substr(0, colon));
  std::string value = line.substr(colon + 1);
  value.erase(0, value.find_first_not_of(" \t"));
  value.erase(value.find_last_not_of(" \t\r\n") + 1);
  if (name == "content-length") answer_.content_bytes = number_in(value);
  if (name == "etag") answer_.version = value;
  if (name == "last-modified") modified_ = value;
  if (name == "content-range") {  // bytes 0-99/1234
    if (const auto slash = value.find('/'); slash != std::string::npos) {
      answer_.object_bytes = number_in(value.substr(slash + 1));
    }
  }
}

std::size_t HttpTransfer::take(std::uint8_t* to, std::size_t bytes) {
  const std::size_t taken = std::min(bytes, buffer_.size() - used_);
  std::memcpy(to, buffer_.data() + used_, taken);
  used_ += taken;
  if (used_ == buffer_.size()) {
    buffer_.clear();
    used_ = 0;
  }
  if (paused_ && buffer_.size() - used_ <= most_buffered / 2) {
    paused_ = false;
    curl_easy_pause(easy_, CURLPAUSE_CONT);
  }
  return taken;
}

void HttpTransfer::finish(CURLcode result) {
  finished_ = true;
  headers_done_ = true;
  result_ = result;
}

std::string HttpTransfer::reason() const {
  return reason_[0] != '\0' ? std::string(reason_.data()) : curl_easy_strerror(result_);
}

}  // namespace convoy::preparation
