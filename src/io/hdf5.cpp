// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5.hpp"

#include <hdf5.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "core/errors.hpp"
#include "core/progress.hpp"
#include "io/seal.hpp"

namespace convoy {
namespace {

// Private to io: identifiers of HDF5's C API under RAII, and its reasons as text.

class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close closing) : id_(id), close_(closing) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  explicit operator bool() const { return id_ >= 0; }
  operator hid_t() const { return id_; }
  herr_t close() { return close_(std::exchange(id_, -1)); }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

// A file that could not be closed (a full disk) stays half open inside HDF5 1.10, whose exit handler then crashes on
// it. All our files are closed by their owners, so the handler has nothing to do. Must precede every other call of
// HDF5.
[[maybe_unused]] const herr_t no_exit_handler = H5dont_atexit();

/// HDF5's innermost reason for the call that just failed on this thread.
std::string hdf5_reason() {
  std::string reason;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* to) {
        auto& text = *static_cast<std::string*>(to);
        if (text.empty() && error->desc != nullptr) text = error->desc;
        return herr_t{0};
      },
      &reason);
  // The file driver's text buries the system's reason: `... errno = 28, error message = 'No space left on device',
  // ...`.
  const std::string key = "error message = '";
  if (const auto begin = reason.find(key); begin != std::string::npos) {
    const auto from = begin + key.size();
    return reason.substr(from, reason.find('\'', from) - from);
  }
  return reason.empty() ? "no reason given by HDF5" : reason;
}

/// Throws Error(data): `'PATH': WHAT 'NAME' ... (reason)`.
[[noreturn]] void fail_on(const std::string& path, const char* what, const std::string& name) {
  fail(Exit::data, "'{}': {} '{}' ({})", path, what, name, hdf5_reason());
}

/// Throws Error(data) if a call failed that makes or changes a list, a space or a type: HDF5 would go on with other
/// settings than ours.
void check_hdf5(herr_t result, const char* call) {
  if (result < 0)
    fail(Exit::data, "{} failed ({}); check which HDF5 library is loaded (convoy --version names it)", call,
         hdf5_reason());
}

/// Returns the handle that `call` made.
Handle checked(Handle handle, const char* call) {
  check_hdf5(handle ? 0 : -1, call);
  return handle;
}

hid_t file_type(Element element) {
  switch (element) {
    case Element::u8:
      return H5T_STD_U8LE;
    case Element::u32:
      return H5T_STD_U32LE;
    case Element::i32:
      return H5T_STD_I32LE;
    case Element::i64:
      return H5T_STD_I64LE;
    case Element::f32:
      return H5T_IEEE_F32LE;
    case Element::f64:
      return H5T_IEEE_F64LE;
  }
  return H5I_INVALID_HID;
}

/// `i32`, for messages.
const char* element_name(Element element) {
  switch (element) {
    case Element::u8:
      return "u8";
    case Element::u32:
      return "u32";
    case Element::i32:
      return "i32";
    case Element::i64:
      return "i64";
    case Element::f32:
      return "f32";
    case Element::f64:
      return "f64";
  }
  return "?";
}

hid_t memory_type(Element element) {
  switch (element) {
    case Element::u8:
      return H5T_NATIVE_UINT8;
    case Element::u32:
      return H5T_NATIVE_UINT32;
    case Element::i32:
      return H5T_NATIVE_INT32;
    case Element::i64:
      return H5T_NATIVE_INT64;
    case Element::f32:
      return H5T_NATIVE_FLOAT;
    case Element::f64:
      return H5T_NATIVE_DOUBLE;
  }
  return H5I_INVALID_HID;
}

Handle make_list(hid_t list_class) { return checked({H5Pcreate(list_class), H5Pclose}, "H5Pcreate"); }

Handle access_list() {
  Handle list = make_list(H5P_FILE_ACCESS);
  // low = high pins the bytes: a later library would otherwise write a newer format.
  check_hdf5(H5Pset_libver_bounds(list, H5F_LIBVER_V110, H5F_LIBVER_V110), "H5Pset_libver_bounds");
  // Lustre and NFS mounts without locks, and read-only folders, work: files are published whole and never changed.
  check_hdf5(H5Pset_file_locking(list, false, true), "H5Pset_file_locking");
  return list;
}

Handle creation_list() {
  Handle list = make_list(H5P_FILE_CREATE);
  check_hdf5(H5Pset_userblock(list, seal_bytes), "H5Pset_userblock");
  check_hdf5(H5Pset_obj_track_times(list, false), "H5Pset_obj_track_times");
  return list;
}

// Intermediate groups made by HDF5 itself would carry times, which differ between two runs.
void make_groups(hid_t file, const std::string& path, const std::string& name) {
  for (std::size_t slash = name.find('/', 1); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    const std::string group = name.substr(0, slash);
    if (H5Lexists(file, group.c_str(), H5P_DEFAULT) > 0) continue;
    const Handle list = make_list(H5P_GROUP_CREATE);
    check_hdf5(H5Pset_obj_track_times(list, false), "H5Pset_obj_track_times");
    const Handle made(H5Gcreate2(file, group.c_str(), H5P_DEFAULT, list, H5P_DEFAULT), H5Gclose);
    if (!made) fail_on(path, "cannot create group", group);
  }
}

Handle make_dataset(hid_t file, const std::string& path, const std::string& name, const DatasetShape& shape) {
  make_groups(file, path, name);
  const std::vector<hsize_t> extent(shape.extent.begin(), shape.extent.end());
  const Handle space =
      checked({extent.empty() ? H5Screate(H5S_SCALAR)
                              : H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
               H5Sclose},
              "H5Screate");
  const Handle list = make_list(H5P_DATASET_CREATE);
  check_hdf5(H5Pset_layout(list, H5D_CONTIGUOUS), "H5Pset_layout");
  check_hdf5(H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY), "H5Pset_alloc_time");
  check_hdf5(H5Pset_fill_time(list, H5D_FILL_TIME_NEVER), "H5Pset_fill_time");
  check_hdf5(H5Pset_obj_track_times(list, false), "H5Pset_obj_track_times");
  Handle dataset(H5Dcreate2(file, name.c_str(), file_type(shape.element), space, H5P_DEFAULT, list, H5P_DEFAULT),
                 H5Dclose);
  if (!dataset) fail_on(path, "cannot create dataset", name);
  return dataset;
}

Handle open_dataset(hid_t file, const std::string& path, const std::string& name) {
  Handle dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset) fail_on(path, "cannot open dataset", name);
  return dataset;
}

std::uint64_t offset_of(hid_t dataset, const std::string& path, const std::string& name) {
  const haddr_t offset = H5Dget_offset(dataset);
  if (offset == HADDR_UNDEF) fail(Exit::data, "'{}': dataset '{}' is not contiguous", path, name);
  return offset;
}

DatasetShape shape_of(hid_t dataset, const std::string& path, const std::string& name) {
  const Handle space(H5Dget_space(dataset), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> extent(static_cast<std::size_t>(std::max(rank, 0)));
  if (rank < 0 || H5Sget_simple_extent_dims(space, extent.data(), nullptr) < 0)
    fail_on(path, "cannot read the shape of dataset", name);
  const Handle type(H5Dget_type(dataset), H5Tclose);
  if (!type) fail_on(path, "cannot read the type of dataset", name);
  for (const Element element : {Element::u8, Element::u32, Element::i32, Element::i64, Element::f32, Element::f64}) {
    if (H5Tequal(type, file_type(element)) > 0) return {element, {extent.begin(), extent.end()}};
  }
  fail(Exit::data, "'{}': dataset '{}' has an element type that is none of u8, u32, i32, i64, f32, f64", path, name);
}

}  // namespace

struct Hdf5File::State {
  std::string path;
  Handle file;
};

std::size_t element_bytes(Element element) {
  switch (element) {
    case Element::u8:
      return 1;
    case Element::u32:
    case Element::i32:
    case Element::f32:
      return 4;
    case Element::i64:
    case Element::f64:
      return 8;
  }
  return 0;
}

Index DatasetShape::count() const {
  return std::accumulate(extent.begin(), extent.end(), Index{1}, std::multiplies<>());
}

std::string DatasetShape::text() const {
  std::string text = fmt::format("{} [", element_name(element));
  for (std::size_t i = 0; i < extent.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", extent[i]);
  return text + "]";
}

Hdf5File::Hdf5File(const std::string& path, Access access) : state_(std::make_unique<State>()) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // a setting of the thread: its reasons are in our errors
  state_->path = path;
  const BlockingIo call("open", path);
  const Handle list = access_list();
  if (access == Access::create) {
    const Handle creation = creation_list();  // named: closing it would clear the reason of a failure
    state_->file = {H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, list), H5Fclose};
    if (!state_->file)
      fail(Exit::data, "cannot create '{}' ({}); make room or choose a writable folder", path, hdf5_reason());
  } else {
    state_->file = {H5Fopen(path.c_str(), H5F_ACC_RDONLY, list), H5Fclose};
    if (!state_->file) fail(Exit::data, "cannot open '{}' as HDF5 ({})", path, hdf5_reason());
  }
}

Hdf5File::~Hdf5File() = default;

void Hdf5File::close() {
  const BlockingIo call("close", state_->path);
  if (state_->file.close() < 0)
    fail(Exit::data, "cannot finish '{}' ({}); make room or choose another folder", state_->path, hdf5_reason());
}

void Hdf5File::write(const std::string& name, const DatasetShape& shape, const void* data) {
  Handle dataset = make_dataset(state_->file, state_->path, name, shape);
  if (shape.count() == 0) return;
  const BlockingIo call("write", state_->path);
  // Small datasets wait in a buffer until they are closed: that is where a full disk shows.
  if (H5Dwrite(dataset, memory_type(shape.element), H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0 || dataset.close() < 0) {
    fail(Exit::data, "cannot write dataset '{}' of '{}' ({}); make room or choose another folder", name, state_->path,
         hdf5_reason());
  }
}

std::uint64_t Hdf5File::reserve(const std::string& name, const DatasetShape& shape) {
  require(shape.count() > 0, "Hdf5File::reserve: an empty dataset has no offset");
  return offset_of(make_dataset(state_->file, state_->path, name, shape), state_->path, name);
}

bool Hdf5File::exists(const std::string& name) const {
  for (std::size_t slash = name.find('/', 1); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    if (H5Lexists(state_->file, name.substr(0, slash).c_str(), H5P_DEFAULT) <= 0) return false;
  }
  return H5Lexists(state_->file, name.c_str(), H5P_DEFAULT) > 0;
}

std::vector<std::string> Hdf5File::names(const std::string& group) const {
  const Handle opened(H5Gopen2(state_->file, group.c_str(), H5P_DEFAULT), H5Gclose);
  if (!opened) fail_on(state_->path, "cannot open group", group);
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* to) {
    static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    return herr_t{0};
  };
  if (H5Literate(opened, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &names) < 0) {
    fail_on(state_->path, "cannot list group", group);
  }
  std::sort(names.begin(), names.end());
  return names;
}

DatasetShape Hdf5File::shape(const std::string& name) const {
  return shape_of(open_dataset(state_->file, state_->path, name), state_->path, name);
}

void Hdf5File::read(const std::string& name, Element element, std::span<std::byte> to) const {
  const Handle dataset = open_dataset(state_->file, state_->path, name);
  const DatasetShape shape = shape_of(dataset, state_->path, name);
  if (shape.element != element) {
    fail(Exit::data, "'{}': dataset '{}' is {}, expected elements of type {}", state_->path, name, shape.text(),
         element_name(element));
  }
  if (shape.bytes() != to.size()) {
    fail(Exit::data, "'{}': dataset '{}' is {} ({} bytes), expected {} bytes", state_->path, name, shape.text(),
         shape.bytes(), to.size());
  }
  if (to.empty()) return;
  const BlockingIo call("read", state_->path);
  if (H5Dread(dataset, memory_type(element), H5S_ALL, H5S_ALL, H5P_DEFAULT, to.data()) < 0) {
    fail_on(state_->path, "cannot read dataset", name);
  }
}

std::uint64_t Hdf5File::offset(const std::string& name) const {
  return offset_of(open_dataset(state_->file, state_->path, name), state_->path, name);
}

std::string hdf5_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("HDF5 {}.{}.{}", major, minor, release);
}

bool hdf5_is_thread_safe() {
  hbool_t safe = 0;
  return H5is_library_threadsafe(&safe) >= 0 && safe;
}

namespace {

// Fixed length, null padded. Variable-length texts would lie in a heap.
Handle text_type(std::size_t bytes) {
  Handle type = checked({H5Tcopy(H5T_C_S1), H5Tclose}, "H5Tcopy");
  check_hdf5(H5Tset_size(type, std::max<std::size_t>(bytes, 1)), "H5Tset_size");
  check_hdf5(H5Tset_strpad(type, H5T_STR_NULLPAD), "H5Tset_strpad");
  check_hdf5(H5Tset_cset(type, H5T_CSET_UTF8), "H5Tset_cset");
  return type;
}

Handle scalar() { return checked({H5Screate(H5S_SCALAR), H5Sclose}, "H5Screate"); }

Handle row(std::size_t count) {
  const hsize_t extent = count;
  return checked({H5Screate_simple(1, &extent, nullptr), H5Sclose}, "H5Screate_simple");
}

void write_attribute(hid_t file, const std::string& path, const std::string& name, hid_t stored, hid_t space,
                     hid_t memory, const void* data) {
  const Handle attribute(H5Acreate2(file, name.c_str(), stored, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute || H5Awrite(attribute, memory, data) < 0) fail_on(path, "cannot write attribute", name);
}

struct OpenAttribute {
  Handle attribute, type;
  H5T_class_t type_class = H5T_NO_CLASS;
  std::size_t count = 0;  ///< elements
};

OpenAttribute open_attribute(hid_t file, const std::string& path, const std::string& name) {
  if (H5Aexists(file, name.c_str()) <= 0) fail(Exit::data, "'{}': attribute '{}' is missing", path, name);
  OpenAttribute opened;
  opened.attribute = {H5Aopen(file, name.c_str(), H5P_DEFAULT), H5Aclose};
  if (!opened.attribute) fail_on(path, "cannot open attribute", name);
  opened.type = {H5Aget_type(opened.attribute), H5Tclose};
  opened.type_class = H5Tget_class(opened.type);
  const Handle space(H5Aget_space(opened.attribute), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (opened.type_class == H5T_NO_CLASS || count < 0) fail_on(path, "cannot read the type of attribute", name);
  opened.count = static_cast<std::size_t>(count);
  return opened;
}

[[noreturn]] void fail_type(const std::string& path, const std::string& name, const char* expected) {
  fail(Exit::data, "'{}': attribute '{}' is not {}", path, name, expected);
}

std::vector<std::string> read_texts(const OpenAttribute& opened, const std::string& path, const std::string& name) {
  if (opened.type_class != H5T_STRING || H5Tis_variable_str(opened.type) > 0) {
    fail_type(path, name, "a text of fixed length");
  }
  const std::size_t bytes = H5Tget_size(opened.type);
  constexpr std::size_t most_bytes = std::size_t{1} << 28;  // more is no attribute, whatever a file says
  if (bytes == 0 || opened.count > most_bytes / bytes) fail_type(path, name, "a text of plausible length");
  std::string buffer(bytes * opened.count, '\0');
  if (!buffer.empty() && H5Aread(opened.attribute, opened.type, buffer.data()) < 0) {
    fail_on(path, "cannot read attribute", name);
  }
  std::vector<std::string> texts(opened.count);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string text = buffer.substr(i * bytes, bytes);
    texts[i] = text.substr(0, text.find('\0'));
  }
  return texts;
}

}  // namespace

void Hdf5File::attribute(const std::string& name, const std::string& text) {
  const Handle type = text_type(text.size()), space = scalar();
  write_attribute(state_->file, state_->path, name, type, space, type, text.c_str());
}

void Hdf5File::attribute(const std::string& name, Index value) {
  const Handle space = scalar();
  write_attribute(state_->file, state_->path, name, H5T_STD_I64LE, space, H5T_NATIVE_INT64, &value);
}

void Hdf5File::attribute(const std::string& name, std::span<const double> values) {
  write_attribute(state_->file, state_->path, name, H5T_IEEE_F64LE, row(values.size()), H5T_NATIVE_DOUBLE,
                  values.data());
}

void Hdf5File::attribute(const std::string& name, const std::vector<std::string>& texts) {
  std::size_t bytes = 1;
  for (const auto& text : texts) bytes = std::max(bytes, text.size());
  std::string buffer(bytes * texts.size(), '\0');
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i].copy(buffer.data() + i * bytes, bytes);
  const Handle type = text_type(bytes);
  write_attribute(state_->file, state_->path, name, type, row(texts.size()), type, buffer.data());
}

bool Hdf5File::has_attribute(const std::string& name) const { return H5Aexists(state_->file, name.c_str()) > 0; }

std::string Hdf5File::text_attribute(const std::string& name) const {
  const auto opened = open_attribute(state_->file, state_->path, name);
  auto texts = read_texts(opened, state_->path, name);
  if (texts.size() != 1) fail_type(state_->path, name, "one text");
  return texts[0];
}

std::vector<std::string> Hdf5File::texts_attribute(const std::string& name) const {
  return read_texts(open_attribute(state_->file, state_->path, name), state_->path, name);
}

Index Hdf5File::integer_attribute(const std::string& name) const {
  const auto opened = open_attribute(state_->file, state_->path, name);
  if (opened.type_class != H5T_INTEGER || opened.count != 1) fail_type(state_->path, name, "one integer");
  Index value = 0;
  if (H5Aread(opened.attribute, H5T_NATIVE_INT64, &value) < 0) fail_on(state_->path, "cannot read attribute", name);
  return value;
}

std::vector<double> Hdf5File::numbers_attribute(const std::string& name) const {
  const auto opened = open_attribute(state_->file, state_->path, name);
  if (opened.type_class != H5T_FLOAT) fail_type(state_->path, name, "a row of floating-point numbers");
  constexpr std::size_t most_values = std::size_t{1} << 20;
  if (opened.count > most_values) fail_type(state_->path, name, "a row of plausible length");
  std::vector<double> values(opened.count);
  if (!values.empty() && H5Aread(opened.attribute, H5T_NATIVE_DOUBLE, values.data()) < 0) {
    fail_on(state_->path, "cannot read attribute", name);
  }
  return values;
}
}  // namespace convoy
