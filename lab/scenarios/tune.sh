# Tuning as a transaction: every setting before and after, also when becalm is killed meanwhile.
#: kernel stock

journal=/run/becalm/tune/journal.jsonl

# Lines of the journal, which grows with every step.
lines() {
    grep -cs '' "$journal" || echo 0
}

# Kills becalm when the journal has so many lines, unless it ends before.
kill_at() {
    while kill -0 "$1" 2>/dev/null && [ "$(lines)" -lt "$2" ]; do :; done
    kill -9 "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

# What a CPU suffers that nobody tuned, for the comparison with one that was.
background_load
becalm record --cpus 1 --duration 3s --quiet -o untuned.becalm
# Somebody's threads on one CPU each, which the kernel moves about when partitions come and go.
taskset 1 sleep 1000 &
taskset 2 sleep 1000 &
settings >before
becalm tune apply --cpus 1 --json >apply.json
applied=$(lines)
settings >tuned
becalm tune status --json >status.json
status=0
becalm tune apply --cpus 1 2>second_apply || status=$?
echo "$status" >second_apply_status
becalm tune restore --json >restore.json
settings >restored

# Killed at five moments of apply, and during the restore that follows.
for part in 1 2 3 4 5; do
    becalm tune apply --cpus 1 >/dev/null 2>&1 &
    kill_at $! $((applied * part / 6))
    becalm tune status --json >"killed_$part.json"
    becalm tune restore >/dev/null 2>&1 &
    kill_at $! $(($(lines) + part))
    becalm tune status --json >"killed_again_$part.json"
    becalm tune restore --json >"restore_$part.json"
    settings >"restored_$part"
done
becalm tune status --json >status_after.json
