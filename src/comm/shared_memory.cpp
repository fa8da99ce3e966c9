// SPDX-License-Identifier: Apache-2.0
#include "comm/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <system_error>

#include "core/descriptor.hpp"

namespace convoy {
namespace {

/// Where rank 0 has put the memory, and a number that stands in it: in another namespace of processes the path names
/// something else.
struct Offer {
  pid_t process = 0;
  int descriptor = -1;
  std::uint64_t token = 0;
};

std::string system_reason() { return std::generic_category().message(errno); }

std::unique_ptr<SharedMemory> map(int descriptor, std::size_t bytes) {
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) return nullptr;
  return std::make_unique<SharedMemory>(address, bytes);
}

/// Beyond the end of a shorter file there is no memory.
bool has_size(int descriptor, std::size_t bytes) {
  struct stat found {};
  return fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode) && found.st_size == static_cast<off_t>(bytes);
}

int create(std::size_t bytes) {
  const int descriptor = memfd_create("convoy", MFD_CLOEXEC);
  if (descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(bytes)) == 0) return descriptor;
  const int reason = errno;
  if (descriptor >= 0) close(descriptor);
  errno = reason;
  return -1;
}

int open_offered(const Offer& offer) {
  if (offer.descriptor < 0) return -1;
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.process, offer.descriptor);
  return open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/// What rank 0 offers. Returns why there is no memory; empty: there is.
std::string open_shared(const Offer& offer, std::size_t bytes, std::unique_ptr<SharedMemory>& memory) {
  const Descriptor descriptor(open_offered(offer));
  if (descriptor.number() < 0) return system_reason();
  if (has_size(descriptor.number(), bytes)) {
    memory = map(descriptor.number(), bytes);
    if (memory == nullptr) return system_reason();
    if (std::memcmp(memory->data(), &offer.token, sizeof offer.token) == 0) return {};
  }
  return "the ranks do not see each other's processes";
}

}  // namespace

SharedMemory::~SharedMemory() { munmap(address_, bytes_); }

SharingResult share_memory(Communicator& communicator, std::size_t bytes) {
  const char* const what = "memory that the ranks of a host share";
  if (communicator.node_size() != communicator.size()) return {nullptr, "the ranks are on several hosts"};
  bytes = std::max(bytes, sizeof(Offer));
  SharingResult result;
  const bool first = communicator.rank() == 0;
  Offer offer;
  std::string problem;
  const Descriptor own(first ? create(bytes) : -1);
  if (first && own.number() < 0) problem = system_reason();
  if (first && own.number() >= 0) {
    std::random_device random;
    offer = {getpid(), own.number(), (std::uint64_t{random()} << 32) + random()};
    if ((result.memory = map(own.number(), bytes)) == nullptr) problem = system_reason();
    if (result.memory) std::memcpy(result.memory->data(), &offer.token, sizeof offer.token);
  }
  communicator.broadcast(std::as_writable_bytes(std::span(&offer, 1)), 0, what);
  if (!first) problem = open_shared(offer, bytes, result.memory);
  const std::vector<std::string> problems = communicator.all_gather(problem, what);
  for (std::size_t rank = 0; rank < problems.size() && result.problem.empty(); ++rank)
    if (!problems[rank].empty()) result.problem = fmt::format("rank {} can't share memory: {}", rank, problems[rank]);
  if (!result.problem.empty()) result.memory.reset();
  // All have compared the number before it goes.
  if (first && result.memory) std::memset(result.memory->data(), 0, sizeof offer.token);
  communicator.barrier(what);
  return result;
}

}  // namespace convoy
