# Packages first (scripts/deps.sh installs them); without them, the same versions from their public
# repositories, which needs the network.

include(FetchContent)

# require_package(<package> <target> <repository> <tag> [cache settings of the fetched build...])
function(require_package package target repository tag)
  find_package(${package} QUIET)
  if(TARGET ${target})
    return()
  endif()
  message(STATUS "${package} is not installed (scripts/deps.sh would): fetching ${tag} of ${repository}")
  foreach(setting IN LISTS ARGN)
    string(REPLACE "=" ";" setting "${setting}")
    list(GET setting 0 name)
    list(GET setting 1 value)
    set(${name} ${value} CACHE BOOL "Fixed by megamoe for its dependency ${package}" FORCE)
  endforeach()
  FetchContent_Declare(
    ${package}
    GIT_REPOSITORY ${repository}
    GIT_TAG ${tag}
    GIT_SHALLOW ON)
  FetchContent_MakeAvailable(${package})
  if(NOT TARGET ${target})
    # Highway of this version names its target without a namespace when it is a subproject.
    string(REGEX REPLACE "^.*::" "" plain "${target}")
    add_library(${target} ALIAS ${plain})
  endif()
endfunction()

find_package(Threads REQUIRED)

require_package(HWY hwy::hwy https://github.com/google/highway.git 1.0.3 HWY_ENABLE_TESTS=OFF
                HWY_ENABLE_EXAMPLES=OFF HWY_ENABLE_CONTRIB=OFF HWY_ENABLE_INSTALL=OFF)
require_package(CLI11 CLI11::CLI11 https://github.com/CLIUtils/CLI11.git v2.1.2)
require_package(nlohmann_json nlohmann_json::nlohmann_json https://github.com/nlohmann/json.git v3.11.2
                JSON_BuildTests=OFF)
if(MEGAMOE_BUILD_TESTS)
  require_package(GTest GTest::gtest_main https://github.com/google/googletest.git release-1.12.1
                  INSTALL_GTEST=OFF)
endif()
if(MEGAMOE_BUILD_BENCH)
  require_package(benchmark benchmark::benchmark https://github.com/google/benchmark.git v1.7.1
                  BENCHMARK_ENABLE_TESTING=OFF BENCHMARK_ENABLE_INSTALL=OFF)
endif()
