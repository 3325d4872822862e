# Tuning as a transaction: every setting before and after, also when becalm is killed amidst of it.
#: kernel stock

journal=/run/becalm/tune/journal.jsonl

# Milliseconds since boot.
now() {
    awk '{ print int($1 * 1000) }' /proc/uptime
}

# Kills becalm so many milliseconds after its journal began or was gone on with.
kill_amidst() {
    until [ -s "$journal" ]; do usleep 1000; done
    usleep "$2"000
    kill -9 "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

settings >before
# What a CPU suffers that nobody tuned, for the comparison with one that was.
background_load
becalm record --cpus 1 --duration 5s --quiet -o untuned.becalm
settings >before_apply
start=$(now)
becalm tune apply --cpus 1 --json >apply.json
took=$(($(now) - start))
settings >tuned
becalm tune status --json >status.json
status=0
becalm tune apply --cpus 1 2>second_apply || status=$?
echo "$status" >second_apply_status
start=$(now)
becalm tune restore --json >restore.json
undoing=$(($(now) - start))
settings >restored

# Killed amidst of apply at five moments, and amidst of the restore that follows.
for part in 1 2 3 4 5; do
    becalm tune apply --cpus 1 >/dev/null 2>&1 &
    kill_amidst $! $((took * part / 8))
    becalm tune status --json >"killed_$part.json"
    becalm tune restore >/dev/null 2>&1 &
    kill_amidst $! $((undoing * part / 8))
    becalm tune restore --json >"restore_$part.json"
    settings >"restored_$part"
done
becalm tune status --json >status_after.json
