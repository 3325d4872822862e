# A command on a CPU that the boot parameters freed and tune run makes quiet, for as long as the command runs.
#: kernel stock
#: parameters isolcpus=1 nohz_full=1 rcu_nocbs=1

background_load
settings >before
becalm tune run --cpus 1 -- becalm record --cpus 1 --duration 5s --quiet -o tuned.becalm
settings >after
# The exit code is the command's.
status=0
becalm tune run --cpus 1 -- sh -c 'grep Cpus_allowed_list /proc/self/status >allowed
    cat /sys/fs/cgroup/becalm/cpuset.cpus.partition >partition; exit 42' || status=$?
echo "$status" >status_of_command
becalm tune status --json >status.json

# Killed, becalm cannot restore anything; a process that watches it does.
becalm tune run --cpus 1 --quiet -- sleep 60 &
run=$!
for _ in $(seq 50); do
    if grep -q isolated /sys/fs/cgroup/becalm/cpuset.cpus.partition 2>/dev/null; then break; fi
    sleep 0.2
done
becalm tune status --json >status_running.json
kill -9 "$run"
for _ in $(seq 50); do
    if [ ! -e /run/becalm/tune/journal.jsonl ]; then break; fi
    sleep 0.2
done
settings >after_kill
