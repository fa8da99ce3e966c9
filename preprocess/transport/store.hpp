// SPDX-License-Identifier: Apache-2.0
// A place that holds named objects: a folder, a web server, an S3 bucket. Raw data is only ever streamed from it.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "preprocess/transport/location.hpp"

namespace convoy::preparation {

struct ObjectInfo {
  std::string name;     ///< relative to the store's folder, `/` between parts
  Index bytes = -1;     ///< -1: not told
  std::string version;  ///< ETag or time of change; empty: not told. For seeing that a source has changed
};

/// What lies directly in a folder, each sorted by name.
struct Listing {
  std::vector<ObjectInfo> objects;
  std::vector<std::string> folders;  ///< names without trailing slash
};

/// Bytes of one object, front to back. Errors are Error(data) that name the object.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Up to `bytes` bytes, at least one; 0 only at the end, which has been checked against the announced length.
  virtual std::size_t read(std::uint8_t* to, std::size_t bytes) = 0;
  /// Goes on `bytes` bytes later; without transferring them where that pays.
  virtual void skip(Index bytes) = 0;
  /// -1: not told.
  virtual Index bytes_left() const { return -1; }
};

/// Part of an object: all of it by default.
struct ByteRange {
  Index begin = 0, end = -1;  ///< end -1: of the object
};

/// Used by one thread at a time.
class Store {
 public:
  virtual ~Store() = default;
  virtual Listing list(const std::string& folder) = 0;
  /// Size and version of one object. Throws Error(data) where there is none.
  virtual ObjectInfo look_up(const std::string& name) = 0;
  /// Size and version of an object, if they cost no request of their own; an object that is missing has none.
  virtual ObjectInfo glance_at(const std::string& name) { return {name, -1, ""}; }
  /// Remote stores begin to fetch at once, so that several streams opened ahead arrive together.
  virtual std::unique_ptr<ByteStream> open(const std::string& name, const ByteRange& range = {}) = 0;
  /// Full address of an object, for messages.
  virtual std::string address(const std::string& name) const = 0;
  /// Streams of small objects worth having open at once.
  virtual std::size_t streams_ahead() const = 0;
  /// What its listings left out so far: addresses, and what is there.
  const std::map<std::string, std::string>& left_out() const { return left_out_; }

 protected:
  /// A folder is listed several times, and by several ranks: what is left out is told once, by who looked at all.
  void leave_out(const std::string& address, const char* what) { left_out_.emplace(address, what); }

 private:
  std::map<std::string, std::string> left_out_;
};

struct TransferSpec {
  std::string endpoint, region;  ///< S3; empty: from the environment and profile files, else Amazon's
  bool anonymous = false;
  int retries = 6;               ///< attempts without a byte of progress before giving up
  double timeout_seconds = 60;   ///< without a byte
  double backoff_seconds = 0.5;  ///< before the first new attempt; doubled for each further one, at most 30
  const std::atomic<bool>* cancel = nullptr;  ///< true: pending waits end with an error
};

/// The store of the folder at `location`. Throws Error(usage) where credentials are missing.
std::unique_ptr<Store> open_store(const Location& location, const TransferSpec& spec);

/// A whole small object.
std::string read_object(Store& store, const std::string& name, Index most_bytes = Index{1} << 30);

}  // namespace convoy::preparation
