# Counts the kernel functions that the catalogue of fixes lists.
#: kernel stock

uname -r >release
awk '$2 ~ /^[tTwW]$/ { print $3 }' /proc/kallsyms | sort -u >functions
