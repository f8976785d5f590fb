#include "runtime/group/agree.hpp"

#include <algorithm>
#include <exception>

#include "base/check.hpp"

namespace megamoe {
namespace {

// A rank's answer is one character and its text.
constexpr char kGood = '+';

char mark_of(ErrorCode code) {
  return static_cast<char>('0' + static_cast<int>(code));
}

ErrorCode code_of(char mark) {
  return static_cast<ErrorCode>(mark - '0');
}

std::string answer_of(const std::function<std::string()>& work) {
  try {
    return kGood + work();
  } catch (const Error& error) {
    return mark_of(error.code()) + std::string(error.what());
  } catch (const std::exception& error) {
    return mark_of(ErrorCode::kInternal) + std::string(error.what());
  }
}

[[noreturn]] void throw_first_failure(const std::vector<std::string>& answers, std::size_t first) {
  const std::string& answer = answers[first];
  const bool is_everyones =
      std::all_of(answers.begin(), answers.end(), [&](const auto& a) { return a == answer; });
  const std::string text = answer.substr(1);
  throw Error(code_of(answer.front()), is_everyones ? text : sentence("rank ", first, ": ", text));
}

}  // namespace

std::vector<std::string> agree(Link& link,
                               const Meeting& meeting,
                               const std::function<std::string()>& work) {
  std::vector<std::string> answers = link.gather(meeting, answer_of(work));
  for (std::size_t rank = 0; rank < answers.size(); ++rank)
    if (answers[rank].front() != kGood) throw_first_failure(answers, rank);
  for (std::string& answer : answers)
    answer.erase(0, 1);
  return answers;
}

}  // namespace megamoe
