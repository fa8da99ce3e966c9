// SPDX-License-Identifier: Apache-2.0
#include "interchange/pickle.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "core/errors.hpp"

namespace convoy {
namespace {

constexpr std::size_t most_values = 1'000'000;
constexpr PickleId mark = -1;

}  // namespace

/// The stack machine. Opcodes are those of Python's pickletools.
class PickleReader {
 public:
  PickleReader(Pickle& to, std::string_view bytes, const std::vector<std::string_view>& globals,
               const std::string& what)
      : to_(to), bytes_(bytes), globals_(globals), what_(what) {}

  void run() {
    if (next<std::uint8_t>() != 0x80) refuse("it is older than protocol 2");
    if (const int protocol = next<std::uint8_t>(); protocol < 2 || protocol > 5)
      refuse(fmt::format("it is of protocol {}", protocol));
    while (step(static_cast<char>(next<std::uint8_t>()))) {
    }
    if (stack_.size() != 1 || stack_.front() == mark) refuse("it ends with values left");
    to_.root_ = stack_.front();
  }

 private:
  using Kind = PickleValue::Kind;

  [[noreturn]] void refuse(const std::string& why) const {
    fail(Exit::data,
         "{} can't be read ({}, at byte {}); save the state dict alone: torch.save(model.state_dict(), 'new.pth')",
         what_, why, at_);
  }

  std::string_view take(std::size_t count) {
    if (bytes_.size() - at_ < count) refuse("it is cut");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  template <class T>
  T next() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) refuse("it is cut");
    std::string text(take(end - at_));
    ++at_;
    return text;
  }

  PickleValue& value(PickleId id) { return to_.values_[static_cast<std::size_t>(id)]; }
  void push(PickleValue made) {
    if (to_.values_.size() == most_values) refuse("it has too many values");
    to_.values_.push_back(std::move(made));
    stack_.push_back(static_cast<PickleId>(to_.values_.size() - 1));
  }
  void push_integer(std::int64_t number) { push({.kind = Kind::integer, .integer = number}); }
  PickleId pop() {
    if (stack_.empty() || stack_.back() == mark) refuse("its stack is empty");
    const PickleId id = stack_.back();
    stack_.pop_back();
    return id;
  }
  PickleId top() const {
    if (stack_.empty() || stack_.back() == mark) refuse("its stack is empty");
    return stack_.back();
  }
  /// What lies above the last mark; both leave the stack.
  std::vector<PickleId> pop_to_mark() {
    const auto found = std::find(stack_.rbegin(), stack_.rend(), mark);
    if (found == stack_.rend()) refuse("a mark is missing");
    std::vector<PickleId> items(found.base(), stack_.end());
    stack_.erase(found.base() - 1, stack_.end());
    return items;
  }
  void push_tuple(std::size_t count) {
    std::vector<PickleId> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    push({.kind = Kind::tuple, .items = std::move(items)});
  }
  void append(Kind kind, const std::vector<PickleId>& items) {
    PickleValue& into = value(top());
    if (into.kind == Kind::made) return;  // a deque, a dict of another class
    if (into.kind != kind) refuse("items are added to a value that has none");
    if (kind == Kind::dict && items.size() % 2 != 0) refuse("a key has no value");
    into.items.insert(into.items.end(), items.begin(), items.end());
  }
  void remember(std::uint32_t number) { memo_[number] = top(); }
  void recall(std::uint32_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) refuse("it refers to a value that it doesn't hold");
    stack_.push_back(found->second);
  }

  void push_global(std::string full) {
    if (std::find(globals_.begin(), globals_.end(), full) == globals_.end()) refuse_global(full);
    push({.kind = Kind::global, .text = std::move(full)});
  }
  [[noreturn]] void refuse_global(const std::string& full) const {
    if (full.starts_with("torch.nn.modules."))
      fail(Exit::data,
           "{} holds a whole module ('{}'), which is code of Python, not a state dict; convert it where that code is: "
           "torch.save(torch.load({}, weights_only=False).state_dict(), 'new.pth')",
           what_, full, what_);
    refuse(fmt::format("it names '{}', which is none of a state dict's", full));
  }
  std::string pop_text() {
    const PickleId id = pop();
    if (value(id).kind != Kind::text) refuse("a name is no text");
    return value(id).text;
  }

  void call() {
    const PickleId arguments = pop(), function = pop();
    if (value(function).kind != Kind::global || value(arguments).kind != Kind::tuple)
      refuse("it calls what is no function");
    if (value(function).text == "collections.OrderedDict") {
      if (!value(arguments).items.empty()) refuse("an OrderedDict is made of arguments");
      push({.kind = Kind::dict});
    } else if (value(function).text == "collections.defaultdict") {  // of what makes missing values
      push({.kind = Kind::dict});
    } else {
      push({.kind = Kind::made, .items = {function, arguments}});
    }
  }

  void push_long(std::size_t count) {
    const std::string_view digits = take(count);
    if (count > 8) return push({.kind = Kind::other});  // of the state of a random number generator
    std::uint64_t bits = 0;
    std::memcpy(&bits, digits.data(), count);
    const bool negative = count > 0 && (static_cast<unsigned char>(digits.back()) & 0x80U) != 0;
    if (negative && count < 8) bits |= ~std::uint64_t{0} << (8 * count);
    push_integer(static_cast<std::int64_t>(bits));
  }

  void push_real() {
    auto bits = next<std::uint64_t>();
    bits = __builtin_bswap64(bits);
    push({.kind = Kind::real, .real = std::bit_cast<double>(bits)});
  }

  void push_text(std::size_t count) { push({.kind = Kind::text, .text = std::string(take(count))}); }
  void push_bytes(std::size_t count) {
    take(count);
    push({.kind = Kind::other});
  }

  /// False at the end.
  bool step(char opcode) {
    switch (static_cast<unsigned char>(opcode)) {
      case '.':  // STOP
        return false;
      case '(':  // MARK
        stack_.push_back(mark);
        return true;
      case '0':  // POP
        pop();
        return true;
      case 'N':  // NONE
        push({});
        return true;
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        push({.kind = Kind::boolean, .integer = static_cast<unsigned char>(opcode) == 0x88 ? 1 : 0});
        return true;
      case 'J':  // BININT
        push_integer(next<std::int32_t>());
        return true;
      case 'K':  // BININT1
        push_integer(next<std::uint8_t>());
        return true;
      case 'M':  // BININT2
        push_integer(next<std::uint16_t>());
        return true;
      case 0x8a:  // LONG1
        push_long(next<std::uint8_t>());
        return true;
      case 0x8b:  // LONG4
        push_long(next<std::uint32_t>());
        return true;
      case 'G':  // BINFLOAT
        push_real();
        return true;
      case 'X':  // BINUNICODE
        push_text(next<std::uint32_t>());
        return true;
      case 'U':   // SHORT_BINSTRING
      case 0x8c:  // SHORT_BINUNICODE
        push_text(next<std::uint8_t>());
        return true;
      case 0x8d:  // BINUNICODE8
        push_text(next<std::uint64_t>());
        return true;
      case 'C':  // SHORT_BINBYTES
        push_bytes(next<std::uint8_t>());
        return true;
      case 'B':  // BINBYTES
        push_bytes(next<std::uint32_t>());
        return true;
      case 0x8e:  // BINBYTES8
      case 0x96:  // BYTEARRAY8
        push_bytes(next<std::uint64_t>());
        return true;
      case 0x8f:  // EMPTY_SET
        push({.kind = Kind::other});
        return true;
      case 0x90:  // ADDITEMS
        pop_to_mark();
        if (value(top()).kind != Kind::other) refuse("items are added to a value that has none");
        return true;
      case 0x91:  // FROZENSET
        pop_to_mark();
        push({.kind = Kind::other});
        return true;
      case ')':  // EMPTY_TUPLE
        push({.kind = Kind::tuple});
        return true;
      case 0x85:  // TUPLE1
      case 0x86:  // TUPLE2
      case 0x87:  // TUPLE3
        push_tuple(static_cast<unsigned char>(opcode) - 0x84U);
        return true;
      case 't': {  // TUPLE
        std::vector<PickleId> items = pop_to_mark();
        push({.kind = Kind::tuple, .items = std::move(items)});
        return true;
      }
      case ']':  // EMPTY_LIST
        push({.kind = Kind::list});
        return true;
      case 'a':  // APPEND
        append(Kind::list, {pop()});
        return true;
      case 'e':  // APPENDS
        append(Kind::list, pop_to_mark());
        return true;
      case '}':  // EMPTY_DICT
        push({.kind = Kind::dict});
        return true;
      case 's': {  // SETITEM
        const PickleId item = pop(), key = pop();
        append(Kind::dict, {key, item});
        return true;
      }
      case 'u':  // SETITEMS
        append(Kind::dict, pop_to_mark());
        return true;
      case 'q':  // BINPUT
        remember(next<std::uint8_t>());
        return true;
      case 'r':  // LONG_BINPUT
        remember(next<std::uint32_t>());
        return true;
      case 'h':  // BINGET
        recall(next<std::uint8_t>());
        return true;
      case 'j':  // LONG_BINGET
        recall(next<std::uint32_t>());
        return true;
      case 0x94:  // MEMOIZE
        remember(static_cast<std::uint32_t>(memo_.size()));
        return true;
      case 0x95:  // FRAME
        next<std::uint64_t>();
        return true;
      case 'c': {  // GLOBAL
        const std::string module = line(), name = line();
        push_global(module + "." + name);
        return true;
      }
      case 0x93: {  // STACK_GLOBAL
        const std::string name = pop_text(), module = pop_text();
        push_global(module + "." + name);
        return true;
      }
      case 0x92:  // NEWOBJ_EX
        pop();
        call();
        return true;
      case 'R':   // REDUCE
      case 0x81:  // NEWOBJ
        call();
        return true;
      case 'b':  // BUILD: attributes, which no value here has use for
        pop();
        top();
        return true;
      case 'Q': {  // BINPERSID
        const PickleId stored = pop();
        push({.kind = Kind::persistent, .items = {stored}});
        return true;
      }
      default:
        refuse(fmt::format("opcode 0x{:02x} is none of a state dict's", static_cast<unsigned char>(opcode)));
    }
  }

  Pickle& to_;
  std::string_view bytes_;
  const std::vector<std::string_view>& globals_;
  const std::string& what_;
  std::size_t at_ = 0;
  std::vector<PickleId> stack_;
  std::unordered_map<std::uint32_t, PickleId> memo_;
};

Pickle::Pickle(std::string_view bytes, const std::vector<std::string_view>& globals, const std::string& what) {
  PickleReader(*this, bytes, globals, what).run();
}

const PickleValue* Pickle::find(const PickleValue& dict, std::string_view key) const {
  if (dict.kind != Kind::dict) return nullptr;
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue& name = at(dict.items[i]);
    if (name.kind == Kind::text && name.text == key) return &at(dict.items[i + 1]);
  }
  return nullptr;
}

}  // namespace convoy
