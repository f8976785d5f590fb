#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/check.hpp"

namespace megamoe {

/// The live handles of one kind: what the C interface was given is looked up here first, so that a
/// null or destroyed handle is an Error and not a crash.
template <class Handle, class Value>
class HandleTable {
 public:
  explicit HandleTable(const char* kind) : kind_(kind) {}

  Handle* add(Value value) {
    auto owned = std::make_shared<Value>(std::move(value));
    auto* const handle = reinterpret_cast<Handle*>(owned.get());
    const std::lock_guard lock(mutex_);
    values_.emplace(handle, std::move(owned));
    return handle;
  }

  /// Stays alive while the caller holds it, even if it is destroyed meanwhile.
  std::shared_ptr<Value> find(const Handle* handle) const {
    require(handle != nullptr, ErrorCode::kInvalidArgument, kind_, " is null");
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(handle);
    require(found != values_.end(),
            ErrorCode::kInvalidArgument,
            kind_,
            " was destroyed, or never made");
    return found->second;
  }

  void remove(const Handle* handle) {
    std::shared_ptr<Value> last;  // ends outside the lock
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(handle);
    if (found == values_.end()) return;
    last = std::move(found->second);
    values_.erase(found);
  }

 private:
  const char* kind_;
  mutable std::mutex mutex_;
  std::unordered_map<const Handle*, std::shared_ptr<Value>> values_;
};

}  // namespace megamoe
