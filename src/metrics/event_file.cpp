// SPDX-License-Identifier: Apache-2.0
#include "metrics/event_file.hpp"

#include <tensorboard.pb.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "core/log.hpp"
#include "core/text.hpp"
#include "core/wall_clock.hpp"
#include "io/seal.hpp"

namespace convoy {
namespace {

const std::string prefix = "events.out.tfevents.";

/// Readers take the files of a folder by name, so a resumed run's second must not be an earlier run's.
Index free_second(const std::filesystem::path& folder) {
  auto second = static_cast<Index>(wall_seconds());
  std::error_code unknown;  // whether files can be written there is found out by opening one
  for (std::filesystem::directory_iterator entry(folder, unknown), end; !unknown && entry != end;
       entry.increment(unknown)) {
    const std::string name = entry->path().filename().string();
    if (name.rfind(prefix, 0) != 0) continue;
    second = std::max<Index>(second, std::strtoll(name.c_str() + prefix.size(), nullptr, 10) + 1);
  }
  return second;
}

/// CRC32C as TFRecord stores it: rotated and shifted, so that a CRC over data that holds CRCs stays strong.
std::uint32_t masked_crc(const std::string& data) {
  const std::uint32_t crc = crc32c(data.data(), data.size());
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(value); ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

double finite_or_zero(double value) { return std::isfinite(value) ? value : 0; }

void fill(tensorboard::Histogram& to, const TensorSummary& from) {
  to.set_min(from.minimum);
  to.set_max(from.maximum);
  double values = 0;
  for (std::size_t i = 0; i < from.counts.size(); ++i) {
    to.add_bucket_limit(from.edges[i + 1]);
    to.add_bucket(from.counts[i]);
    values += from.counts[i];
  }
  to.set_num(values);
  to.set_sum(finite_or_zero(from.mean * values));
  to.set_sum_squares(finite_or_zero(from.norm * from.norm));
}

tensorboard::Event event_at(Index step) {
  tensorboard::Event event;
  event.set_wall_time(wall_seconds());
  event.set_step(step);
  return event;
}

}  // namespace

std::string frame_record(const std::string& data) {
  const std::string length = little_endian(static_cast<std::uint64_t>(data.size()));
  return length + little_endian(masked_crc(length)) + data + little_endian(masked_crc(data));
}

EventFile::EventFile(const std::string& folder, Index first_step) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    log::warn(
        "cannot make the folder '{}' ({}); make room or choose a writable --output-dir. The run continues without TensorBoard events",
        folder, error.message());
    return;
  }
  char host[256] = "localhost";
  gethostname(host, sizeof(host) - 1);
  path_ = fmt::format("{}/{}{:010d}.{}.{}", folder, prefix, free_second(folder), host, getpid());
  records_ = OptionalRecords(path_, AppendFile::Start::fresh);
  tensorboard::Event version = event_at(0), start = event_at(first_step);
  version.set_file_version("brain.Event:2");
  append(version.SerializeAsString());
  start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  append(start.SerializeAsString());
}

void EventFile::append(const std::string& message) { records_.append(frame_record(message)); }

void EventFile::write(Index step, const Scalars& scalars) {
  tensorboard::Event event = event_at(step);
  for (const auto& [tag, value] : scalars) {
    auto* to = event.mutable_summary()->add_value();
    to->set_tag(tag);
    to->set_simple_value(static_cast<float>(value));
  }
  append(event.SerializeAsString());
}

void EventFile::write(Index step, const std::string& group, const std::vector<TensorSummary>& summaries) {
  tensorboard::Event event = event_at(step);
  for (const TensorSummary& summary : summaries) {
    auto* histogram = event.mutable_summary()->add_value();
    histogram->set_tag(group + "/" + summary.name);
    fill(*histogram->mutable_histogram(), summary);
    auto* norm = event.mutable_summary()->add_value();
    norm->set_tag(group + "_norm/" + summary.name);
    norm->set_simple_value(static_cast<float>(summary.norm));
  }
  append(event.SerializeAsString());
}

void EventFile::write_for_plugin(const char* plugin, const std::string& tag, const std::string& content,
                                 const std::string* tensor) {
  tensorboard::Event event = event_at(0);
  auto* value = event.mutable_summary()->add_value();
  value->set_tag(tag);
  auto* data = value->mutable_metadata()->mutable_plugin_data();
  data->set_plugin_name(plugin);
  data->set_content(content);
  if (tensor != nullptr) {
    auto* to = value->mutable_tensor();
    to->set_dtype(tensorboard::Tensor::STRING);
    to->mutable_tensor_shape()->add_dim()->set_size(1);
    to->add_string_val(*tensor);
  }
  append(event.SerializeAsString());
}

void EventFile::write_text(const std::string& tag, const std::string& markdown) {
  write_for_plugin("text", tag, "", &markdown);
}

void EventFile::write_hyperparameters(const std::map<std::string, std::string>& values) {
  tensorboard::HParams data;
  auto* start = data.mutable_session_start_info();
  start->set_start_time_secs(wall_seconds());
  for (const auto& [name, text] : values) {
    tensorboard::HParams::Value& to = (*start->mutable_hparams())[name];
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0' && std::isfinite(number)) {
      to.set_number_value(number);
    } else if (text == "true" || text == "false") {
      to.set_bool_value(text == "true");
    } else {
      to.set_string_value(valid_utf8(text));
    }
  }
  write_for_plugin("hparams", "_hparams_/session_start_info", data.SerializeAsString(), nullptr);
}

void EventFile::write_end(Result result) {
  tensorboard::HParams data;
  auto* end = data.mutable_session_end_info();
  end->set_end_time_secs(wall_seconds());
  end->set_status(result == Result::success ? tensorboard::HParams::End::SUCCESS : tensorboard::HParams::End::FAILURE);
  write_for_plugin("hparams", "_hparams_/session_end_info", data.SerializeAsString(), nullptr);
}

void EventFile::write_charts(const std::string& category,
                             const std::vector<std::pair<std::string, std::vector<std::string>>>& charts) {
  tensorboard::Layout layout;
  auto* to = layout.add_category();
  to->set_title(category);
  for (const auto& [title, tags] : charts) {
    auto* chart = to->add_chart();
    chart->set_title(title);
    for (const std::string& tag : tags) chart->mutable_multiline()->add_tag('^' + tag + '$');
  }
  const std::string text = layout.SerializeAsString();
  write_for_plugin("custom_scalars", "custom_scalars__config__", "", &text);
}

}  // namespace convoy
