#!/usr/bin/env bash
# Provides the parts of a CUDA toolkit that gemmtune needs: cuda.h and nvrtc.h to build, libnvrtc to compile kernels.
# Takes them from CUDA_HOME or /usr/local/cuda; where there is none, from the pinned wheels (cmake/versions.sh), which
# it unpacks into build/toolkit/{include,lib}. --wheels unpacks them even so. Says on stdout which folder it is.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
toolkit=$BUILD_DIR/toolkit

# cuda_major FOLDER: the major version of a toolkit that has all that is needed, or nothing.
cuda_major() {
  [ -e "$1/include/nvrtc.h" ] && [ -e "$1/include/cuda.h" ] || return 0
  local library
  for library in "$1"/lib64/libnvrtc.so "$1"/lib64/libnvrtc.so.[0-9]*; do
    [ -e "$library" ] || continue
    sed -n 's/^#define CUDA_VERSION \([0-9]*\)[0-9]\{3\}$/\1/p' "$1/include/cuda.h"
    return 0
  done
}

if [ "${1:-}" != --wheels ]; then
  for folder in ${CUDA_HOME:+"$CUDA_HOME"} /usr/local/cuda; do
    major=$(cuda_major "$folder")
    if [ "${major:-0}" -ge "$MIN_CUDA" ]; then echo "$folder"; exit 0; fi
    if [ -n "$major" ]; then say "$folder is CUDA $major: $MIN_CUDA or newer is needed, so taking NVRTC from PyPI"; fi
  done
fi

if [ "$(cat "$toolkit/wheels" 2>/dev/null)" = "$CUDA_WHEELS" ]; then echo "$toolkit"; exit 0; fi

# A python3 that has pip: the first in PATH, else the system's, which apt gives pip to.
python_with_pip() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -m pip --version >/dev/null 2>&1; then echo "$python"; return; fi
  done
}
python=$(python_with_pip)
if [ -z "$python" ]; then
  # shellcheck disable=SC2086   # a list
  apt_install $WHEEL_NEEDS
  python=$(python_with_pip)
  [ -n "$python" ] || die "python3 has no pip; install python3-pip, or set CUDA_HOME to a CUDA $MIN_CUDA toolkit"
fi
say "no CUDA toolkit here: fetching from PyPI $CUDA_WHEELS"
mkdir -p "$LOG_DIR"
log=$LOG_DIR/pip.log
rm -rf "$toolkit.new"
mkdir -p "$toolkit.new/wheels"
# shellcheck disable=SC2086   # a list
"$python" -m pip --disable-pip-version-check download --no-cache-dir --no-deps --only-binary=:all: \
  -d "$toolkit.new/wheels" $CUDA_WHEELS >"$log" 2>&1 </dev/null ||
  die "pip could not fetch $CUDA_WHEELS ($(shown "$log") says why); set CUDA_HOME to a CUDA $MIN_CUDA toolkit, or run this again"
"$python" - "$toolkit.new" >>"$log" 2>&1 <<'PYTHON' || die "the wheels of $CUDA_WHEELS could not be unpacked ($(shown "$log") says why)"
import glob, os, shutil, sys, zipfile
out = sys.argv[1]
for wheel in glob.glob(out + "/wheels/*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            parts = name.split("/")       # nvidia/cu13/include/..., nvidia/cu13/lib/...
            if parts[0] != "nvidia" or len(parts) < 4 or name.endswith("/") or ".alt." in name:
                continue
            if parts[2] != "include" and not (parts[2] == "lib" and parts[3].startswith("libnvrtc")):
                continue
            target = os.path.join(out, *parts[2:])
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with archive.open(name) as source, open(target, "wb") as copy:
                shutil.copyfileobj(source, copy)
shutil.rmtree(out + "/wheels")
for needed in ("include/cuda.h", "include/nvrtc.h", "lib/libnvrtc.so.*"):
    if not glob.glob(os.path.join(out, needed)):
        sys.exit("no " + needed + " in the wheels")
PYTHON
printf '%s\n' "$CUDA_WHEELS" >"$toolkit.new/wheels"
rm -rf "$toolkit"
mv "$toolkit.new" "$toolkit"
echo "$toolkit"
