# Finds the CUDA *headers* (cuda.h, nvrtc.h). No CUDA library is linked: the driver, NVRTC, NVML and cuBLASLt
# are opened at run time, so that one binary starts on every machine.
# Order: CUDA_HOME, /usr/local/cuda, then GEMMTUNE_TOOLKIT_DIR (scripts/toolkit.sh unpacks the pinned wheels there).
find_path(GEMMTUNE_CUDA_INCLUDE cuda.h
  PATHS $ENV{CUDA_HOME}/include /usr/local/cuda/include ${GEMMTUNE_TOOLKIT_DIR}/include NO_DEFAULT_PATH)
find_path(GEMMTUNE_NVRTC_INCLUDE nvrtc.h
  PATHS $ENV{CUDA_HOME}/include /usr/local/cuda/include ${GEMMTUNE_TOOLKIT_DIR}/include NO_DEFAULT_PATH)
if(NOT GEMMTUNE_CUDA_INCLUDE OR NOT GEMMTUNE_NVRTC_INCLUDE)
  message(FATAL_ERROR "no CUDA headers: set CUDA_HOME to a CUDA 13 toolkit, or run scripts/toolkit.sh and pass "
    "-DGEMMTUNE_TOOLKIT_DIR=<build>/toolkit")
endif()
add_library(gemmtune_toolkit INTERFACE)
target_include_directories(gemmtune_toolkit SYSTEM INTERFACE ${GEMMTUNE_CUDA_INCLUDE} ${GEMMTUNE_NVRTC_INCLUDE})
target_compile_definitions(gemmtune_toolkit INTERFACE GEMMTUNE_TOOLKIT_DIR="${GEMMTUNE_TOOLKIT_DIR}")
