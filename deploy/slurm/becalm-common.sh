# shellcheck shell=sh
# What becalm-prolog, becalm-epilog and becalm-health have in common. Each reads this from its own folder, $here, in a shell of
# its own: whatever goes wrong here, also an error in becalm.conf, ends that shell alone.

# Beside the shell it takes coreutils, findutils, util-linux and procps, as every distribution has them. slurmd passes no PATH.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
umask 077
# What is checked is said here and in becalm.conf, and nowhere else: no defaults of becalm's are read.
export BECALM_CONFIG=''

BECALM=becalm BECALM_FOLDER=/var/lib/becalm/slurm BECALM_KEEP=20
BECALM_CHECK=500ms BECALM_OPTIONS='' BECALM_MAX_NOISE=1% BECALM_MAX_DETOUR='' BECALM_PATIENCE=15 BECALM_BESIDE_JOBS=no
BECALM_JOB_CPUS='' BECALM_JOB_MOST=24h
BECALM_DRAIN=no BECALM_DRAIN_AFTER=2
if [ -e "${here:?}/becalm.conf" ]; then
    # shellcheck source=becalm.conf
    . "$here/becalm.conf"
fi
# An empty one would be taken for a file.
if [ -n "${SLURM_CONF:-}" ]; then export SLURM_CONF; else unset SLURM_CONF; fi
node=${SLURMD_NODENAME:-$(uname -n)}
folder=$BECALM_FOLDER/$node

# Prints its arguments as one line, with a question mark for each control character: names of threads may hold any. Not with echo, which
# interprets backslashes in some shells.
one_line() {
    printf '%s' "$*" | LC_ALL=C tr '\000-\037\177' '?'
    printf '\n'
}

# Whether only root and the user of this process can change what the absolute path $1 leads to: each existing directory and link on the
# way belongs to them, and others may not write it, except to a sticky one, in which they can replace nothing.
is_private() {
    case $1 in /*) ;; *) return 1 ;; esac
    own=$(id -u)
    # As it is written, with its links, and where that leads.
    for part in "$1" "$(realpath -m -- "$1")"; do
        while :; do
            if found=$(stat -c '%u %g %a' -- "$part" 2>/dev/null); then
                mode=${found##* } owner=${found%% *}
                [ "$owner" = 0 ] || [ "$owner" = "$own" ] || return 1
                if ! [ -L "$part" ]; then
                    case $found in
                        *' 1'???) ;;
                        *[2367]) return 1 ;;
                        *' 0 '*) ;;
                        *) case $mode in *[2367]?) return 1 ;; esac ;;
                    esac
                fi
            fi
            [ "$part" != / ] || break
            part=$(dirname -- "$part")
        done
    done
}

# Ends this shell because the directory cannot be used.
no_directory() {
    logger -t becalm -- "$(one_line "no check: $1; set BECALM_FOLDER in $here/becalm.conf to an absolute path that only root may write")"
    exit 1
}
is_private "$folder" || no_directory "other users can change what $folder leads to"
mkdir -p -- "$folder" || no_directory "cannot create the directory $folder"
is_private "$folder" || no_directory "other users can change what $folder leads to"

# Writes one line into the node's log, of which the last 1,000 lines are kept, and into that of the system.
log() {
    said_now=$(one_line "$*")
    printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$said_now" >>"$folder/log"
    if [ "$(wc -l <"$folder/log")" -gt 2000 ]; then
        tail -n 1000 "$folder/log" >"$folder/log.new" && mv "$folder/log.new" "$folder/log"
    fi
    # There need not be one.
    logger -t becalm -- "$said_now" 2>/dev/null || true
}

# Whether the node may be measured now: no job but this one may have a process on it. A step of a job has that in its title, as
# "slurmstepd: [12.batch]"; slurmd also starts a slurmstepd without one for the plugins of prologs and epilogs.
may_measure() {
    [ "$BECALM_BESIDE_JOBS" = yes ] && return 0
    ! pgrep -a slurmstepd | grep '\[[0-9].*\.' | grep -v "\[${SLURM_JOB_ID:-none}\." | grep -q .
}

# Records the node for a moment under the name $1. Succeeds if the node is within the limits, fails with 3 if it is not, having set $found
# to what was found, and otherwise if that is not known.
check() {
    name=$1 said=$folder/said
    # One at a time, as two would measure each other.
    exec 9>"$folder/lock"
    if ! flock -n 9; then
        log "$name: no check, as another one is under way"
        return 1
    fi
    if ! may_measure; then
        log "$name: no check, as other jobs run here"
        return 1
    fi
    # shellcheck disable=SC2086
    set -- record --summary --quiet --node "$node" --duration "$BECALM_CHECK" -o "$folder/$name.becalm" $BECALM_OPTIONS
    [ -z "$BECALM_MAX_NOISE" ] || set -- "$@" --max-noise "$BECALM_MAX_NOISE"
    [ -z "$BECALM_MAX_DETOUR" ] || set -- "$@" --max-detour "$BECALM_MAX_DETOUR"
    timeout -k 2 "$BECALM_PATIENCE" "$BECALM" "$@" >/dev/null 2>"$said"
    code=$?
    # Read before the lock is given back, as the next check writes to the same file.
    found=$(if [ $code = 3 ]; then worst; else tail -n 1 "$said"; fi)
    exec 9>&-
    case $code in
        0) log "$name: within the limits" ;;
        3) log "$name: $found" ;;
        124 | 137) log "$name: no check, as becalm had not ended after $BECALM_PATIENCE s" ;;
        *) log "$name: no check, as becalm ended with $code: $found" ;;
    esac
    tidy
    return $code
}

# What the check that wrote $said found at its worst, as one line: the CPU that lost most, with the source of most of that; else the
# longest detour.
worst() {
    sed -n 's/^becalm: CPU/CPU/p' "$said" | LC_ALL=C awk '
        / % of its time/ { lost = $4 + 0; if (lost > most) { most = lost; line = $0 } }
        / in one detour/ && !detour { detour = $0 }
        END { printf "%s", line == "" ? detour : line }' | LC_ALL=C tr -c '[:print:]' '?' | cut -c 1-240
}

# Removes the oldest recordings of checks and of jobs.
tidy() {
    for kind in job check; do
        find "$folder" -maxdepth 1 -name "$kind-*.becalm" -printf '%T@ %p\n' | sort -rn | tail -n "+$((BECALM_KEEP + 1))" |
            while read -r _ old; do rm -rf -- "$old"; done
    done
}
