// SPDX-License-Identifier: Apache-2.0
// From words to a validated configuration. Everything wrong is one Error(usage) that names the option, the value, where
// it stood and what is allowed.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "options/option.hpp"

namespace convoy {

/// Reads a file of text: a configuration, a network, class weights. The program lets rank 0 read and broadcasts, so
/// that all ranks see the same text or the same Error(usage).
using ReadText = std::function<std::string(const std::string& path)>;
std::string read_text_file(const std::string& path);
/// Empty where there is no such file.
std::string read_text_file_if_there(const std::string& path);

/// Do the words of a command that resumes name a data set?
enum class NamesData : std::uint8_t { no, yes };
/// Reads a run's own configuration; empty: it gives none.
using ReadOwn = std::function<std::string(const std::string& path, NamesData of_words)>;
inline std::string read_own_file(const std::string& path, NamesData) { return read_text_file_if_there(path); }

// `words`: what follows the command's name.
/// With --resume auto and --output-dir the run's own config.cfg counts before everything else, but for what is about
/// one job. `read_own` reads it.
TrainConfig parse_train(const std::vector<std::string>& words, const ReadText& read_text = read_text_file,
                        const ReadOwn& read_own = read_own_file);
EvaluateConfig parse_evaluate(const std::vector<std::string>& words, const ReadText& read_text = read_text_file);
PredictConfig parse_predict(const std::vector<std::string>& words, const ReadText& read_text = read_text_file);
BenchConfig parse_bench(const std::vector<std::string>& words, const ReadText& read_text = read_text_file);
/// Contradictions of the job are left to the job: only what is there is looked at.
PreflightConfig parse_preflight(const std::vector<std::string>& words, const ReadText& read_text = read_text_file);
/// The same.
PreviewConfig parse_preview(const std::vector<std::string>& words, const ReadText& read_text = read_text_file);
InspectConfig parse_inspect(const std::vector<std::string>& words, const ReadText& read_text = read_text_file);
StatusConfig parse_status(const std::vector<std::string>& words, const ReadText& read_text = read_text_file);

/// For commands with options of their own: sets the options in `words`. Returns the positional words.
std::vector<std::string> read_words(const std::string& command, const std::vector<OptionGroup>& groups,
                                    const std::vector<std::string>& words, const ReadText& read_text = read_text_file);

/// A path given as `--NAME PATH`, which the options have put into `to`, or as the only positional word.
void take_positional(const std::string& command, const std::vector<std::string>& positional, const std::string& name,
                     std::string& to);

/// A configuration file's text alone, as to_ini() writes it.
TrainConfig parse_ini(const std::string& text, const std::string& name = "configuration");

/// Throws Error(usage) where values contradict each other.
void check(const TrainConfig& config);
/// The part of it that is about ranks and averages, for commands that train nothing.
void check_averages(const TrainConfig& config);
/// Settings that are legal and probably not meant, one text each.
std::vector<std::string> implausible(const TrainConfig& config);

}  // namespace convoy
