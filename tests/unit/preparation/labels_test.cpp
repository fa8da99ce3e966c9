// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/labels.hpp"

#include <gtest/gtest.h>

#include "core/text.hpp"
#include "tests/support/expect_error.hpp"

namespace convoy::preparation {
namespace {

std::string found(const LabelFile& labels, const std::string& name) { return labels.find(name).value_or("none"); }

TEST(Labels, LinesOfPathAndLabel) {
  const LabelFile labels("a/1.JPEG 7\r\n\nb/2 x.jpg  n01\nb/1.JPEG\t8.0\n \v\n", "f");
  EXPECT_EQ(found(labels, "a/1.JPEG"), "#7");
  EXPECT_EQ(found(labels, "a/1.png"), "#7");  // without extension
  EXPECT_EQ(found(labels, "elsewhere/2 x.jpg"), "n01");
  EXPECT_EQ(found(labels, "b/1.JPEG"), "#8");
  EXPECT_EQ(found(labels, "c/1.JPEG"), "none");  // two classes have that name
}

TEST(Labels, TablesOfAnySeparatorWithOrWithoutHeader) {
  for (const std::string separator : {",", ";", "|", "\t", " , ", "\t "}) {
    for (const std::string header : {"", "id@label\n", "Image ID@Class Name\n", "filename@target\n"}) {
      std::string text = header + "1@frog\n\"2.jpg\"@\"golden retriever\"\nsub/3@7\n";
      for (auto at = text.find('@'); at != std::string::npos; at = text.find('@')) text.replace(at, 1, separator);
      const LabelFile labels(text, "f");
      EXPECT_EQ(found(labels, "1.jpg"), "frog") << text;
      EXPECT_EQ(found(labels, "2.jpg"), "golden retriever") << text;
      EXPECT_EQ(found(labels, "sub/3.png"), "#7") << text;
      EXPECT_EQ(found(labels, "label.jpg"), "none") << text;
    }
  }
  // The header tells which of more columns; a quoted field may hold a comma, two quotes are one.
  const LabelFile wide(",fold,label,image\n0,1,\"dog, \"\"hound\"\"\",a.jpg\n1,2,cat,b.jpg\n", "f");
  EXPECT_EQ(found(wide, "a.jpg"), "dog, \"hound\"");
  EXPECT_EQ(found(wide, "b.jpg"), "cat");
  EXPECT_EQ(found(LabelFile("label,image\n3,a.jpg\n", "f"), "a.jpg"), "#3");
  const LabelFile windows("train\\cat\\1.jpg,cat\r\ntrain\\dog\\1.jpg,dog\r\n", "f");
  EXPECT_EQ(found(windows, "train/dog/1.jpg"), "dog");
}

TEST(Labels, TinyImageNetAndOtherListsOfMxnet) {
  const LabelFile boxes("val_0.JPEG\tn03444034\t0\t32\t44\t62\nval_1.JPEG\tn04067472\t52\t55\t57\t59\n", "f");
  EXPECT_EQ(found(boxes, "images/val_1.JPEG"), "n04067472");
  const LabelFile blanks("0 3.0 a.jpg\n1 4 sub/b.jpg\n", "f");  // a .lst whose tabs became blanks
  EXPECT_EQ(found(blanks, "a.jpg"), "#3");
  EXPECT_EQ(found(blanks, "sub/b.jpg"), "#4");
}

TEST(Labels, WordsOfAPathAndOfAClass) {
  const LabelFile labels("my photo 2.jpg golden retriever\nb,c.jpg dog, hound\n\"d e.png\" 3\n", "f");
  EXPECT_EQ(found(labels, "my photo 2.jpg"), "golden retriever");
  EXPECT_EQ(found(labels, "b,c.jpg"), "dog, hound");
  EXPECT_EQ(found(labels, "d e.png"), "#3");
}

TEST(Labels, ANumberIsOneOnlyAsAWhole) {
  const LabelFile labels("a.jpg 3d-printer\nb.jpg 3\nc.jpg 03\nd.jpg #1\n", "f");
  EXPECT_EQ(found(labels, "a.jpg"), "3d-printer");
  EXPECT_EQ(found(labels, "b.jpg"), "#3");
  EXPECT_EQ(found(labels, "c.jpg"), "#3");
  EXPECT_EQ(class_name(labels.find("d.jpg").value()), "#1");
  EXPECT_EQ(class_number(labels.find("d.jpg").value()), -1);
  EXPECT_EQ(parse_label("-1"), std::nullopt);
  EXPECT_EQ(trimmed("\xEF\xBB\xBF 7\r\n"), "7");
}

TEST(Labels, WhatIsNotClearIsNeverGuessed) {
  const auto refuse = [](const std::string& text, const std::vector<std::string>& parts) {
    expect_error(Exit::data, parts, [&] { LabelFile(text, "f"); });
  };
  refuse("a.jpg,frog,1\nb.jpg,frog,big\n", {"'f', line 2", "which of its 3 fields is the label"});
  refuse("a.jpg,2024-01-01,frog\n", {"'f', line 1", "which of its 3 fields is the label"});
  refuse("image,label\na.jpg,frog\nb.jpg\n", {"'f', line 3", "1 fields, the header has 2"});
  refuse("image,label\na.jpg,frog,x\n", {"'f', line 2", "3 fields, the header has 2"});
  refuse("frog a.jpg\n", {"'f', line 1", "the path stands last"});
  refuse("frog\ta.jpg\n", {"'f', line 1", "the path stands last"});
  refuse("photo one frog\n", {"'f', line 1", "not clear"});
  refuse("\"a.jpg,frog\n", {"'f', line 1"});
  refuse("n01\nn02.jpg\n", {"'f', line 1"});
  for (const std::string between : {"=", ":", "->", "|"}) {  // one class name a line it is not
    const std::string text = "1.jpg" + between + "frog\n2.jpg" + between + "deer\n";
    if (between == "|") {
      EXPECT_EQ(found(LabelFile(text, "f"), "2.jpg"), "deer");
    } else {
      refuse(text, {"'f', line 1"});
    }
  }
  refuse("2007_000032\n2007_000039\n", {"'f', line 1", "each line is another name"});  // images, or classes
  refuse("mkdir -p n01\nmv a.jpg n01/\necho done\n", {"'f', line 3"});
}

TEST(Labels, ListsOfMxnet) {
  const std::string text = "0\t3.000\t5\tx/a.jpg\n1\t4\t6\tx/b.jpg\n";
  EXPECT_EQ(found(LabelFile(text, "f"), "x/b.jpg"), "#4");
  const LabelFile second(text, "f", 1, LabelFile::Paths::keep);
  EXPECT_EQ(second.class_of(1), "#6");
  EXPECT_EQ(second.paths().front(), "x/a.jpg");
  expect_error(Exit::data, {"'f', line 1", "no label 2"}, [&] { LabelFile(text, "f", 2); });
}

TEST(Labels, KagglesTableAndTheScriptOfMoves) {
  const LabelFile kaggle("ImageId,PredictionString\nILSVRC2012_val_00000002,n02 1 2 3 4 n02 5 6 7 8\n", "f");
  EXPECT_EQ(found(kaggle, "val/ILSVRC2012_val_00000002.JPEG"), "n02");
  const LabelFile moves("#!/bin/bash\nmkdir -p n03\nmv ILSVRC2012_val_00000009.JPEG n03/\n", "f");
  EXPECT_EQ(found(moves, "ILSVRC2012_val_00000009.JPEG"), "n03");
}

TEST(Labels, NamesByNumber) {
  const LabelFile synsets("n01\nn02\nn02\n", "f");
  EXPECT_EQ(found(synsets, "ILSVRC2012_val_00000002.JPEG"), "n02");
  EXPECT_EQ(synsets.numbered_lines(), 3);
  for (const char* name : {"ILSVRC2012_val_00000004.JPEG", "x_0.JPEG", "x.JPEG"}) {
    expect_error(Exit::data, {name, "no line among the 3 labels of 'f'"}, [&] { synsets.find(name); });
  }
}

TEST(Labels, PathsThatTheExtensionTellsApart) {
  const LabelFile labels("./a/1.png 1\na/1.jpg 2\na/2.jpg 3\na/2.jpg 3\n", "f");
  EXPECT_EQ(found(labels, "a/1.png"), "#1");
  EXPECT_EQ(found(labels, "a/1.jpg"), "#2");
  EXPECT_EQ(found(labels, "a/1.jpeg"), "none");
  EXPECT_EQ(found(labels, "a/2.JPEG"), "#3");
}

TEST(Labels, OneImageOfTwoClassesIsAnError) {
  const std::string text = "a/1.jpg x\n\nb/1.jpg y\n./a/1.jpg y\n";
  expect_error(Exit::data, {"'f' gives one image two classes ('x' in line 1, 'y' in line 4)"},
               [&] { LabelFile(text, "f"); });
  EXPECT_EQ(LabelFile(text, "f", 0, LabelFile::Paths::keep).class_of(2), "y");  // a list: the report tells
}

TEST(Labels, ByteOrderMarks) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(found(LabelFile(mark + "a.jpg 7\n", "f"), "a.jpg"), "#7");
  EXPECT_EQ(found(LabelFile(mark + "ImageId,PredictionString\na,n01 1\n", "f"), "a.jpg"), "n01");
  EXPECT_EQ(parse_class_list(mark + "a\nb\n", "f").number_of("a"), 0);
  for (const std::string text : {"\xFF\xFE"
                                 "a",
                                 "\xFE\xFF"
                                 "a"}) {
    expect_error(Exit::data, {"'f' is no plain text (it is UTF-16"}, [&] { LabelFile(text, "f"); });
    expect_error(Exit::data, {"'f' is no plain text (it is UTF-16"}, [&] { parse_class_list(text, "f"); });
  }
}

TEST(Labels, NumbersThatAreNoClassNumbers) {
  for (const std::string label : {"-1", "0.5", "2e9", "1e999", "99999999999999999999"}) {
    const std::vector<std::string> parts{"'f', line 2: the label '" + label + "' is no class number"};
    expect_error(Exit::data, parts, [&] { LabelFile("a.jpg 0\nb.jpg " + label + "\n", "f"); });
    expect_error(Exit::data, parts, [&] { LabelFile("0\t1\ta.jpg\n1\t" + label + "\tb.jpg\n", "f"); });
  }
  for (const std::string label : {"nan", "inf", "cat"}) {
    expect_error(Exit::data, {"'f', line 1: the label '" + label + "' is no"},
                 [&] { LabelFile("0\t" + label + "\ta.jpg\n", "f"); });
  }
  EXPECT_EQ(found(LabelFile("a.jpg nan\n", "f"), "a.jpg"), "nan");  // the bread
}

TEST(Labels, WhatMeansNothingIsAnError) {
  expect_error(Exit::data, {"'f', line 2", "a number alone"}, [] { LabelFile("a.jpg 1\n490\n", "f"); });
  expect_error(Exit::data, {"'f' has no labels"}, [] { LabelFile("\n \n", "f"); });
  expect_error(Exit::data, {"'f', line 2", "neither a path and a label"}, [] { LabelFile("a.jpg 1\nn01\n", "f"); });
  expect_error(Exit::data, {"'f', line 2", "the label is missing"}, [] { LabelFile("ImageId,\nx,\n", "f"); });
  expect_error(Exit::data, {"'f', line 1", "the label is missing"}, [] { LabelFile("0\t\ta.jpg\n", "f"); });
}

TEST(Classes, AreNumberedByNameOrGiven) {
  const ClassList seen = classes_from({"n02", "n01", "n02"});
  EXPECT_EQ(seen.names, (std::vector<std::string>{"n01", "n02"}));
  EXPECT_EQ(seen.number_of("n02"), 1);
  const ClassList numbers = classes_from({"#2", "#0"});
  EXPECT_EQ(numbers.names, (std::vector<std::string>{"class-0", "class-1", "class-2"}));
  EXPECT_EQ(numbers.number_of("#2"), 2);
  EXPECT_EQ(numbers.number_of("#3"), -1);
  // Where classes have numbers as names a number is a name (N06): "2" stands last.
  const ClassList named = classes_from({"0", "1", "10", "11", "2", "03"});
  EXPECT_EQ(named.names[5], "2");
  EXPECT_EQ(named.number_of("#2"), 5);
  EXPECT_EQ(named.number_of("#3"), named.number_of("03"));
  EXPECT_EQ(named.number_of("#4"), -1);
  EXPECT_EQ(classes_from({"3", "03"}).number_of("#3"), -1);  // either could be meant
  EXPECT_EQ(classes_from({"0", "1", "3", "#2"}).names, (std::vector<std::string>{"0", "1", "2", "3"}));
  // Positions count from 0: a file that counts from 1 gives itself away.
  expect_error(Exit::data, {"label 2 means none of the 2 classes ('cat' is number 0)"}, [] {
    classes_from({"cat", "dog", "#1", "#2"});
  });
  // A folder called `#1 dog` is no class number (N22).
  const ClassList hashes = classes_from({"cat", "dog", named_class("#1 dog")});
  EXPECT_EQ(hashes.names, (std::vector<std::string>{"#1 dog", "cat", "dog"}));
  EXPECT_EQ(hashes.number_of(named_class("#1 dog")), 0);
  const ClassList given = parse_class_list("n02 dog, hound\nn01 cat\n", "f");
  EXPECT_EQ(given.number_of("n01"), 1);
  EXPECT_EQ(given.number_of("n03"), -1);
  EXPECT_EQ(given.names.front(), "n02 dog, hound");
  expect_error(Exit::data, {"'n01' twice"}, [] { parse_class_list("n01\nn01\n", "f"); });
  expect_error(Exit::data, {"lists no classes"}, [] { parse_class_list("\n", "f"); });
  expect_error(Exit::data, {"no class number"}, [] { classes_from({"#999999999"}); });
}

}  // namespace
}  // namespace convoy::preparation
