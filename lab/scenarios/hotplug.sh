# The measured CPU goes away in the middle of a recording, and comes back after it.
#: kernel stock

becalm record --cpus 1 --duration 8s -o run.becalm &
recording=$!
# becalm turns its trace on just before the loop starts. A recording that failed turns on none.
until grep -q 1 /sys/kernel/tracing/instances/*/tracing_on 2>/dev/null; do
    kill -0 $recording
    sleep 0.1
done
sleep 3
echo 0 >/sys/devices/system/cpu/cpu1/online
cat /sys/devices/system/cpu/online >online
status=0
wait $recording || status=$?
echo "$status" >record_status
echo 1 >/sys/devices/system/cpu/cpu1/online
becalm report run.becalm --json >report.json
becalm report run.becalm
ls /sys/kernel/tracing/instances >instances
