# A scenario that fails, for the lab's test of itself.
#: kernel stock

uname -r >release
nproc >cpus
id -u >uid
false
echo 'not reached' >after
