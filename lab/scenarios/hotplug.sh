# The measured CPU goes away in the middle of a recording, and comes back after it.
#: kernel stock

becalm record --cpus 1 --duration 8s -o run.becalm &
recording=$!
# The loop is at work once it has a thread and after that the kernel writes events of its CPU: becalm tries tracing out in an
# instance of its own before there is a thread, and the thread prepares itself for seconds here before the trace begins.
until grep -q '^becalm/1$' /proc/$recording/task/*/comm &&
    grep -q '^entries: [1-9]' /sys/kernel/tracing/instances/*/per_cpu/cpu1/stats; do
    kill -0 $recording
    sleep 0.1
done 2>/dev/null
sleep 2
echo 0 >/sys/devices/system/cpu/cpu1/online
cat /sys/devices/system/cpu/online >online
status=0
wait $recording || status=$?
echo "$status" >record_status
echo 1 >/sys/devices/system/cpu/cpu1/online
ls /sys/kernel/tracing/instances >instances
