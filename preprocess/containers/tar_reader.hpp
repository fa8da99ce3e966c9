// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "preprocess/transport/store.hpp"

namespace convoy::preparation {

enum class Compression : std::uint8_t { none, compressed };
/// Decides by the name: `.tar`, `.tar-000001`, or `.tar.gz`, `.tgz`, `.tar.bz2`, `.tar.xz`, `.tar.zst`, `.tar.lz4`.
bool is_tar_name(const std::string& name);
Compression compression_of(const std::string& name);
/// Returns `n01440764` of `train/n01440764.tar.gz`, `x-000001` of `x.tar-000001`.
std::string tar_stem(const std::string& name);

struct TarMember {
  std::string name;  ///< plain_path() of what the archive says
  bool folder = false;
  std::string link;    ///< what it is another name of, if it is a link and has no bytes of its own
  std::string target;  ///< the same as the name of a member
  Index bytes = 0;
  Index begin = 0;  ///< where its header begins in the (unpacked) archive
};

/// Which members are shown beside files: links, hard or symbolic, and folders.
enum class Members : std::uint8_t { files, and_links, and_folders };

/// Regular files of a tar archive (ustar, GNU, pax) or of several in one file, front to back. Errors are Error(data)
/// naming the archive: damaged, shorter than announced, or without its end marker, at which libarchive itself ends in
/// silence.
class TarReader {
 public:
  /// The stream begins at a member's header, `offset` bytes into the archive. `what` names the archive in messages.
  TarReader(std::unique_ptr<ByteStream> stream, std::string what, Compression compression, Index offset = 0);
  ~TarReader();
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;

  /// False at the end marker.
  bool next(TarMember& member, Members shown = Members::files);
  /// All bytes of the member that next() gave. Memory grows with what arrives, whatever its header announces. False,
  /// and nothing is read, where it has more than `most_bytes`.
  bool read(std::vector<std::uint8_t>& to, Index most_bytes);
  /// Reads the stream to its end, behind the end marker, so that it can compare its checksum.
  void read_rest();
  /// Return where the data of the member that next() gave begins, and where the next member's header (or the end
  /// marker) does.
  Index data_begin() const;
  Index next_begin() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy::preparation
