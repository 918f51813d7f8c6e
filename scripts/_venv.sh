# Shared by the scripts here: `. scripts/_venv.sh; prepare_venv` makes .venv (or $VENV) with the pinned packages and sets
# $VENV_PYTHON. Run from the repository's root. POSIX sh.

VENV=.venv
LOCK=requirements.lock
STAMP=$VENV/.installed
SHARED=  # where packages lie that are read from another environment

# Whether $1 starts, is Python 3.12 or newer, and can make virtual environments.
is_suitable() {
    "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1
}

# Prints the interpreter to use; fails with one clear line.
find_python() {
    if [ -n "${PYTHON:-}" ]; then
        if is_suitable "$PYTHON"; then echo "$PYTHON"; return 0; fi
        echo "note: PYTHON=$PYTHON does not start as Python >= 3.12; looking for another one" >&2
    fi
    for candidate in python3.14 python3.13 python3.12 python3; do
        if is_suitable "$candidate"; then command -v "$candidate"; return 0; fi
    done
    for minor in 14 13 12; do
        for candidate in "$(pyenv root 2>/dev/null || echo "$HOME/.pyenv")"/versions/3.$minor.*/bin/python; do
            if is_suitable "$candidate"; then echo "$candidate"; return 0; fi
        done
    done
    echo "error: no Python >= 3.12 found: install one, or name it: PYTHON=/path/to/python3.12 $0" >&2
    return 1
}

# Prints where the packages of the interpreter $1 lie.
packages_of() {
    "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
}

# The interpreter $1 finds the packages that lie in $2 too, after its own. A path in a .pth file adds packages, and not
# the .pth files beside them, of which one is this checkout.
share_packages() {
    echo "$2" >"$(packages_of "$1")/shared.pth"
}

# Makes .venv if it is missing or unusable, and installs the project with pinned versions if they changed.
prepare_venv() {
    VENV_PYTHON=$PWD/$VENV/bin/python
    if ! is_suitable "$VENV_PYTHON"; then
        python=$(find_python) || return 1
        echo "making $VENV with $python" >&2
        "$python" -m venv --clear "$VENV" || return 1
    fi
    wanted=$(cat "$LOCK" pyproject.toml ${SHARED:+requirements.lock} | cksum)
    if [ "$(cat "$STAMP" 2>/dev/null)" != "$wanted" ]; then
        echo "installing the pinned packages of $LOCK into $VENV (once)" >&2
        [ -z "$SHARED" ] || share_packages "$VENV_PYTHON" "$SHARED" || return 1
        "$VENV_PYTHON" -m pip install --quiet --no-compile --disable-pip-version-check -r "$LOCK" || return 1
        "$VENV_PYTHON" -m pip install --quiet --disable-pip-version-check --no-deps -e . || return 1
        # by all cores, where pip takes one; without byte code every command takes twice as long as it needs
        "$VENV_PYTHON" -m compileall -q -j 0 "$VENV" jaxdp >/dev/null 2>&1 || true
        echo "$wanted" >"$STAMP"
    fi
}
