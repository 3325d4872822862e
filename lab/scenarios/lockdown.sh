# A kernel that was told to keep its secrets even from root: tracefs refuses to open anything.
#: kernel stock
#: parameters lockdown=confidentiality

cat /sys/kernel/security/lockdown >lockdown
becalm >audit 2>&1
becalm record --cpus 0-1 --duration 3s -o run.becalm
