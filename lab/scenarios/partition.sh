# An isolated cpuset partition of cgroup v2, made and undone by shell: what the kernel says of it, and becalm inside.
#: kernel stock

root=/sys/fs/cgroup
partition=$root/quiet
cat "$root/cpuset.cpus.effective" >effective_before
echo +cpuset >"$root/cgroup.subtree_control"
mkdir "$partition"
cat "$partition/cpuset.cpus.partition" >fresh

# The kernel takes the word and says beside it why it does not hold.
echo isolated >"$partition/cpuset.cpus.partition"
cat "$partition/cpuset.cpus.partition" >without_cpus
echo member >"$partition/cpuset.cpus.partition"
echo 1 >"$partition/cpuset.cpus"
echo isolated >"$partition/cpuset.cpus.partition"
cat "$partition/cpuset.cpus.partition" >made
cat "$root/cpuset.cpus.effective" >effective_meanwhile

# A shell moves itself into the partition and then becomes becalm; a second, that stays outside, keeps its CPU.
grep Cpus_allowed_list /proc/self/status >allowed_outside
sh -c "echo \$\$ >$partition/cgroup.procs
    grep Cpus_allowed_list /proc/self/status >allowed_inside
    exec becalm record --cpus 1 --duration 3s --quiet -o inside.becalm"

# Another group that claims the CPU takes the partition its validity, and gives it back when it goes.
mkdir "$root/rival"
echo 1 >"$root/rival/cpuset.cpus"
cat "$partition/cpuset.cpus.partition" >with_rival
rmdir "$root/rival"

echo member >"$partition/cpuset.cpus.partition"
cat "$partition/cpuset.cpus.partition" >undone
rmdir "$partition"
echo -cpuset >"$root/cgroup.subtree_control"
cat "$root/cpuset.cpus.effective" >effective_after
