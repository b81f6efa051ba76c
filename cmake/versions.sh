# shellcheck shell=bash disable=SC2034   # sourced
# Pinned versions and package names, in one place. Sourced by scripts/*.sh.

# System packages by their Debian 12 and Ubuntu 24.04 names; apt gives the distribution's version.
# NAME:WHAT, where WHAT shows that it is there: a command, or a header below an include folder.
BUILD_NEEDS="g++:g++ cmake:cmake ninja-build:ninja libcli11-dev:CLI/CLI.hpp libfmt-dev:fmt/format.h
  nlohmann-json3-dev:nlohmann/json.hpp libsqlite3-dev:sqlite3.h"
TEST_NEEDS="libgtest-dev:gtest/gtest.h"
# Only where no CUDA toolkit is installed, to fetch the wheels below.
WHEEL_NEEDS="ca-certificates python3 python3-pip"

# The oldest that build it: the C++20 library of GCC 12, and the CMake of Ubuntu 22.04.
MIN_GCC=12
MIN_CMAKE=3.22

# A CUDA toolkit counts from this major version on: earlier NVRTCs do not know sm_103a.
MIN_CUDA=13
# The parts of a toolkit that are needed where none is installed, as wheels on PyPI: NVRTC with its builtins and
# nvrtc.h, to compile kernels, and cuda.h, to build. Both of one CUDA release.
CUDA_WHEELS="nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.88"

# Other major versions lay out the same .clang-format differently.
CLANG_FORMAT_MAJOR=14
