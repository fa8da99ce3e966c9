// SPDX-License-Identifier: Apache-2.0
#include "report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.hpp"
#include "report/chart.hpp"
#include "report/differences.hpp"

namespace convoy {
namespace {

// A larger matrix is no picture.
constexpr std::size_t most_classes = 100, most_rows = 15;
// Bytes of all photographs, so that the page stays below 1 MB.
constexpr std::size_t most_picture_bytes = 600'000;

constexpr const char* head = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{}</title><style>
:root{{color-scheme:light dark;--back:#fff;--text:#1c2024;--quiet:#5f6872;--line:#dfe3e8;--bad:#b42318;
--c0:#2563b8;--c1:#d1600a;--c2:#1f8a5b;--c3:#7a4bb5;--c4:#b8336a;--c5:#0f8b99;--c6:#8a6d10;--c7:#5b6470}}
@media (prefers-color-scheme:dark){{:root{{--back:#15181c;--text:#e6e9ec;--quiet:#9aa4ae;--line:#2f363d;--bad:#ff8a80;
--c0:#6ea8ff;--c1:#ff9d52;--c2:#56c596;--c3:#b794f4;--c4:#f27ba5;--c5:#4fd0de;--c6:#d9b84a;--c7:#a5adb5}}}}
@media print{{:root{{color-scheme:light;--back:#fff;--text:#000;--quiet:#444;--line:#ccc;--bad:#a00;
--c0:#2563b8;--c1:#d1600a;--c2:#1f8a5b;--c3:#7a4bb5;--c4:#b8336a;--c5:#0f8b99;--c6:#8a6d10;--c7:#5b6470}}
figure,tr{{break-inside:avoid}}h2,h3,h3+p{{break-after:avoid}}.grid{{grid-template-columns:1fr 1fr!important}}table{{font-size:8pt!important}}td,th{{padding-left:2px!important;padding-right:6px!important}}body{{max-width:none!important;font-size:10pt}}rect,circle,i{{print-color-adjust:exact}}}}
*{{box-sizing:border-box}}body{{margin:0 auto;max-width:1180px;padding:24px;background:var(--back);color:var(--text);
font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}}
h1{{font-size:1.5em;margin:0 0 4px}}h2{{font-size:1.2em;margin:32px 0 8px;border-bottom:1px solid var(--line)}}h3{{font-size:1em;margin:20px 0 6px}}
.quiet{{color:var(--quiet)}}.bad{{color:var(--bad)}}.wide{{overflow-x:auto}}
table{{border-collapse:collapse;font-variant-numeric:tabular-nums}}th,td{{padding:4px 12px 4px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}}
th{{color:var(--quiet);font-weight:600}}td.n,th.n{{text-align:right}}td.o{{overflow-wrap:anywhere}}
.grid{{margin-top:14px;display:grid;grid-template-columns:repeat(auto-fit,minmax(420px,1fr));gap:16px 28px}}@media(max-width:520px){{.grid{{grid-template-columns:1fr}}}}
figure{{margin:0}}svg{{width:100%;height:auto;display:block}}figcaption{{color:var(--quiet);font-size:.87em;display:flex;flex-wrap:wrap;gap:2px 14px}}
figcaption span{{white-space:nowrap;max-width:100%;overflow:hidden;text-overflow:ellipsis}}figcaption i{{display:inline-block;width:14px;height:8px;margin-right:5px;background:currentColor}}figcaption i.thin{{height:2px;vertical-align:middle}}
svg text{{font-size:11.5px;fill:var(--text)}}svg .title{{font-size:13.5px;font-weight:600}}svg .axis{{fill:var(--quiet)}}svg .on{{fill:#fff}}.grid>figure{{min-width:0;max-width:620px}}
path{{fill:none;stroke-linejoin:round}}path.strong{{stroke-width:2}}path.thin{{stroke-width:1.1;opacity:.8}}line.grid{{stroke:var(--line)}}
.photos{{display:flex;flex-wrap:wrap;gap:14px}}.photos figure{{width:132px}}.photos img{{width:132px;image-rendering:pixelated;display:block}}.photos figcaption{{display:block;overflow-wrap:anywhere}}
.frame{{fill:none;stroke:var(--line)}}.hit{{fill:#1f8a5b}}.miss{{fill:#c2410c}}
)";

std::string styles() {
  std::string text;
  for (int i = 0; i < chart_colours; ++i)
    text += fmt::format(".s{0}{{stroke:var(--c{0})}}.b{0}{{fill:var(--c{0});color:var(--c{0})}}", i);
  return text + "\n</style></head><body>\n";
}

std::string number(double value, const char* format) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
}

/// Of n columns, the first to the left, the others to the right if `numbers`.
class Table {
 public:
  Table(std::initializer_list<const char*> heads, bool numbers) : numbers_(numbers) {
    text_ = R"(<div class="wide"><table><tr>)";
    bool first = true;
    for (const char* name : heads) add_cell("th", name, std::exchange(first, false));
    text_ += "</tr>\n";
  }
  void row(const std::vector<std::string>& cells) {
    text_ += "<tr>";
    for (std::size_t i = 0; i < cells.size(); ++i) add_cell("td", cells[i], i == 0);
    text_ += "</tr>\n";
  }
  std::string finish() const { return text_ + "</table></div>\n"; }

 private:
  void add_cell(const char* tag, const std::string& text, bool first) {
    text_ += fmt::format(R"(<{0} class="{1}">{2}</{0}>)", tag, first || !numbers_ ? "o" : "n", html_text(text));
  }
  bool numbers_;
  std::string text_;
};

std::string table_of(const std::vector<RunRecord>& runs) {
  Table table({"run", "network", "ranks", "global batch", "epochs", "hours", "best val top-1", "in epoch", "images/s",
               "result"},
              true);
  for (const RunRecord& run : runs) {
    table.row({run.folder, run.model, fmt::format("{}", run.ranks), fmt::format("{}", run.global_batch),
               fmt::format("{}", run.epochs), number(run.hours, "{:.3f}"), number(run.best_top1, "{:.2f} %"),
               std::isfinite(run.best_top1) ? number(run.best_epoch, "{:.0f}") : "-",
               run.speed.empty() ? "-" : number(run.speed.back().y, "{:.1f}"), run.result});
  }
  return table.finish();
}

/// What ended a run that did not finish, and what it warned of.
std::string troubles_of(const RunRecord& run) {
  std::string text;
  if (!run.reason.empty()) text += fmt::format("<p class=\"bad\">{}</p>\n", html_text(run.reason));
  if (run.warnings.empty()) return text;
  text += "<h3>Warnings</h3><ul>\n";
  for (const std::string& warning : run.warnings) text += fmt::format("<li>{}</li>\n", html_text(warning));
  return text + "</ul>\n";
}

std::string curves_of(const std::vector<RunRecord>& runs) {
  std::vector<Line> loss, top1, rate, speed;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    const int colour = static_cast<int>(i) % chart_colours;
    const std::string prefix = runs.size() == 1 ? "" : run.folder + " ";
    const auto pair = [&](std::vector<Line>& to, const Series& train, const Series& val) {
      to.push_back({.name = prefix + "train", .colour = colour, .strong = false, .points = train});
      // One run has two colours; of several, each has one.
      to.push_back({.name = prefix + "val", .colour = runs.size() == 1 ? 1 : colour, .points = val});
    };
    pair(loss, run.train_loss, run.val_loss);
    pair(top1, run.train_top1, run.val_top1);
    rate.push_back({.name = prefix + "rate", .colour = colour, .strong = false, .points = run.rate});
    speed.push_back({.name = prefix + "speed", .colour = colour, .strong = false, .points = run.speed});
  }
  const std::string charts = line_chart("Loss", "", loss) + line_chart("Top-1 accuracy", "%", top1) +
                             line_chart("Learning rate", "", rate) + line_chart("Speed of the job", "images/s", speed);
  if (charts.empty()) return "<p class=\"quiet\">No run has made a step yet.</p>\n";
  return "<div class=\"grid\">\n" + charts + "</div>\n";
}

/// `room`: bytes that photographs may still take.
std::string worst_of(const EvaluationRecord& evaluation, std::size_t& room) {
  std::string text;
  for (const WorstImage& image : evaluation.worst) {
    if (image.jpeg.empty() || image.jpeg.size() > room) continue;
    room -= image.jpeg.size();
    text += fmt::format(
        "<figure><img alt=\"{0}\" src=\"data:image/jpeg;base64,{1}\"><figcaption>{0}: {2}, taken for {3} ({4}); loss "
        "{5}</figcaption></figure>\n",
        html_text(image.name), html_text(image.jpeg), html_text(image.label), html_text(image.predicted),
        number(100 * image.probability, "{:.1f} %"), number(image.loss, "{:.2f}"));
  }
  if (text.empty()) return text;
  return "<h3>Images with the largest loss</h3><div class=\"photos\">\n" + text + "</div>\n";
}

std::string evaluation_of(const EvaluationRecord& evaluation) {
  std::string text = fmt::format("<h3>Evaluation '{}'</h3><p>{} split, {}: top-1 {}, loss {}; checkpoint {}</p>\n",
                                 html_text(evaluation.folder), html_text(evaluation.split),
                                 counted(evaluation.images, "image"), number(evaluation.top1, "{:.2f} %"),
                                 number(evaluation.loss, "{:.4f}"), html_text(evaluation.checkpoint));
  if (evaluation.confusion.empty()) return text;
  const auto& counts = evaluation.confusion;
  const std::size_t classes = counts.size();
  struct Mistake {
    std::size_t label, predicted;
    Index count;
  };
  struct Recall {
    std::size_t label;
    Index correct, images;
    double share() const { return static_cast<double>(correct) / static_cast<double>(images); }
  };
  std::vector<Mistake> mistakes;
  std::vector<Recall> recalls;
  for (std::size_t label = 0; label < classes; ++label) {
    Index images = 0;
    for (std::size_t predicted = 0; predicted < classes; ++predicted) {
      images += counts[label][predicted];
      if (label != predicted && counts[label][predicted] > 0)
        mistakes.push_back({label, predicted, counts[label][predicted]});
    }
    if (images > counts[label][label]) recalls.push_back({label, counts[label][label], images});
  }
  std::stable_sort(mistakes.begin(), mistakes.end(), [](auto& a, auto& b) { return a.count > b.count; });
  std::stable_sort(recalls.begin(), recalls.end(), [](auto& a, auto& b) { return a.share() < b.share(); });
  if (classes <= most_classes) {
    text += confusion_chart(evaluation);
  } else {
    text += fmt::format(
        "<p class=\"quiet\">{} classes are too many for a picture; '{}/confusion.csv' has all counts.</p>\n", classes,
        html_text(evaluation.folder));
  }
  if (mistakes.empty()) return text;
  text += "<div class=\"grid\">";
  Table worst({"class", "correct", "images", "percent"}, true);
  for (std::size_t i = 0; i < std::min(recalls.size(), most_rows); ++i)
    worst.row({evaluation.classes[recalls[i].label], fmt::format("{}", recalls[i].correct),
               fmt::format("{}", recalls[i].images), fmt::format("{:.1f}", 100 * recalls[i].share())});
  text += "<div><h3>Least accurate classes</h3>" + worst.finish() + "</div>";
  Table pairs({"class", "taken for", "images"}, false);
  for (std::size_t i = 0; i < std::min(mistakes.size(), most_rows); ++i)
    pairs.row({evaluation.classes[mistakes[i].label], evaluation.classes[mistakes[i].predicted],
               fmt::format("{}", mistakes[i].count)});
  text += "<div><h3>Most frequent mistakes</h3>" + pairs.finish() + "</div>";
  return text + "</div>\n";
}

/// Options and facts with more than one value, a column per run.
std::string differences_of(const std::vector<RunRecord>& runs) {
  std::vector<Difference> rows = compare_options(runs);
  for (Difference& fact : compare_environment(runs)) rows.push_back(std::move(fact));
  if (rows.empty()) return "<p class=\"quiet\">The runs have the same options, ranks, device, hosts and build.</p>\n";
  std::string text = R"(<div class="wide"><table><tr><th>option</th>)";
  for (const RunRecord& run : runs) text += fmt::format("<th>{}</th>", html_text(run.folder));
  text += "</tr>\n";
  for (const Difference& row : rows) {
    text += fmt::format("<tr><td class=\"o\">{}</td>", html_text(row.name));
    for (const std::string& cell : row.values) text += fmt::format("<td class=\"o\">{}</td>", html_text(cell));
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

std::string run_section(const RunRecord& run, std::size_t& room) {
  std::string text =
      fmt::format("<h2>{}</h2>\n<p class=\"quiet\">{} on {}; {}, {}; {}; started {}</p>\n", html_text(run.folder),
                  html_text(run.model), html_text(run.device), counted(run.ranks, "rank"),
                  counted(run.replicas, "replica"), html_text(run.build), html_text(run.started));
  text += troubles_of(run);
  const std::string charts = time_chart(run.times) + rank_chart(run.times);
  if (!charts.empty()) text += "<div class=\"grid\">\n" + charts + "</div>\n";
  if (!run.times.empty() && !run.times.back().slowest.empty())
    text += fmt::format(
        "<p class=\"quiet\">Slowest in the last epoch: {}, which took {:.4g} s of its own; the mean is {:.4g} s.</p>\n",
        html_text(run.times.back().slowest), run.times.back().busy_max, run.times.back().busy_mean);
  for (const EvaluationRecord& evaluation : run.evaluations)
    text += evaluation_of(evaluation) + worst_of(evaluation, room);
  if (run.options.empty()) return text;
  text += "<details><summary>Configuration</summary>\n";
  Table table({"option", "value"}, false);
  for (const auto& [name, value] : run.options) table.row({name, value});
  return text + table.finish() + "</details>\n";
}

std::string begin_page(const std::string& title, const std::string& build) {
  return fmt::format(fmt::runtime(head), html_text(title)) + styles() +
         fmt::format("<h1>{}</h1><p class=\"quiet\">Convoy {}</p>\n", html_text(title), html_text(build));
}

}  // namespace

std::string chart_page(const std::string& title, const std::string& build, const std::vector<std::string>& charts) {
  std::string page = begin_page(title, build) + "<div class=\"grid\">\n";
  for (const std::string& chart : charts) page += chart;
  return page + "</div></body></html>\n";
}

std::string report_page(const std::vector<RunRecord>& runs, const std::string& build) {
  std::string page =
      begin_page(runs.size() == 1 ? fmt::format("Run {}", runs.front().folder) : counted(runs.size(), "run"), build);
  page += table_of(runs) + curves_of(runs);
  if (runs.size() > 1) page += "<h2>What differs</h2>\n" + differences_of(runs);
  std::size_t room = most_picture_bytes;
  for (const RunRecord& run : runs) page += run_section(run, room);
  return page + "</body></html>\n";
}

}  // namespace convoy
