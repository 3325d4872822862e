# shellcheck shell=sh
# A systemd of its own, as process 1 of new namespaces, on what this machine has installed, laid over so that nothing of it changes:
# systemd.sh FOLDER BECALM UNITS ADDRESS, in a mount namespace of its own.
set -eu
folder=$1 becalm=$2 units=$3 address=$4
mount --make-rprivate /
mount -t tmpfs tmpfs "$folder"
cd "$folder"
mkdir above work root cgroup
mount -t overlay overlay -o lowerdir=/,upperdir=above,workdir=work root
cp "$becalm" root/usr/bin/becalm
mkdir -p root/etc/becalm
printf 'interval = 200ms\nwindow = 20ms\nbudget = 90%%\nbusy = 100%%\n' >root/etc/becalm/watch.conf
# Of what is installed nothing else is to start.
rm -rf root/etc/systemd/system/*
cp "$units"/becalm-watch.service root/etc/systemd/system/
sed "s/^ListenStream=.*/ListenStream=$address/" "$units"/becalm-watch.socket >root/etc/systemd/system/becalm-watch.socket
printf '[Unit]\nRequires=becalm-watch.socket becalm-watch.service\n' >root/etc/systemd/system/becalm-test.target
# A control group of its own, which is the root of those within.
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then kind='-t cgroup2'; else kind='-t cgroup -o none,name=systemd'; fi
# shellcheck disable=SC2086
mount $kind cgroup cgroup
group=cgroup/becalm-systemd-$$
mkdir "$group"
echo $$ >"$group/cgroup.procs"
cat >start <<'END'
set -eu
cd root
mount -t proc proc proc
# As every container has it: what belongs to the whole machine is only read.
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t tmpfs tmpfs sys/fs/cgroup
case $1 in *cgroup2) at=sys/fs/cgroup ;; *) at=sys/fs/cgroup/systemd && mkdir $at ;; esac
mount $1 cgroup $at
mount -t tracefs tracefs sys/kernel/tracing
for place in run tmp dev; do mount -t tmpfs tmpfs $place; done
for device in null zero full random urandom tty; do cp -a /dev/$device dev/; done
mkdir dev/shm dev/pts
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
exec env -i "PATH=$PATH" container=becalm chroot . /lib/systemd/systemd --unit=becalm-test.target --log-target=console --show-status=no
END
status=0
unshare --mount --pid --uts --ipc --cgroup --fork --kill-child sh start "$kind" || status=$?
echo $$ >cgroup/cgroup.procs
find "$group" -depth -type d -exec rmdir {} ';'
# What halts namespaces ends by SIGINT (reboot(2)).
[ "$status" = 130 ]
