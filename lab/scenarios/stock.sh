# Debian's default kernel, recorded by root and then by a user who may not trace.
#: kernel stock

cp /sys/kernel/tracing/available_events .
becalm record --cpus 0-1 --duration 3s -o run.becalm
becalm report run.becalm --json >report.json

su user -c 'cd; becalm record --cpus 0-1 --duration 3s -o run.becalm; echo $? >status; becalm report run.becalm --json >report.json'
mkdir user
cp -r /home/run.becalm /home/status /home/report.json user
ls /sys/kernel/tracing/instances >instances
