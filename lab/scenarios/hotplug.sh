# The measured CPU goes away in the middle of a recording, and comes back after it.

( sleep 3; echo 0 >/sys/devices/system/cpu/cpu1/online; cat /sys/devices/system/cpu/online >online ) &
status=0
becalm record --cpus 1 --duration 8s -o run.becalm || status=$?
wait
echo "$status" >record_status
echo 1 >/sys/devices/system/cpu/cpu1/online
becalm report run.becalm --json >report.json
becalm report run.becalm
ls /sys/kernel/tracing/instances >instances
