package machine

import "github.com/kubeparts/kubeparts/internal/lab"

// diskSize is the size of the root file system, which is the machine's only disk: tests may fill it.
const diskSize = "8G"

// The disks of the machine, by the order of the options of qemu.
const (
	programsDisk = "/dev/vdb"
	jobDisk      = "/dev/vdc"
	outDisk      = "/dev/vdd"
	swapDisk     = "/dev/vde"
)

// The programs that the machine's first process may be.
const (
	systemdInit = "/usr/lib/systemd/systemd"
	plainInit   = "/usr/local/sbin/init"
)

// The line that ends the output of the machine is exitLine and the exit code of the job.
const exitLine = "kubeparts-exit "

// initrdScript mounts the root file system and starts the program that the kernel's parameter realinit names.
const initrdScript = `#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs dev /dev
for module in /modules/*; do
	/bin/busybox insmod "$module"
done
until [ -e /dev/vda ]; do
	/bin/busybox sleep 0.1
done
/bin/busybox mount -t ext4 /dev/vda /root
/bin/busybox umount /dev /sys /proc
exec /bin/busybox switch_root /root "$realinit"
`

// guestFiles are the files of the root file system that are not in a package.
func guestFiles() map[string]string {
	files := lab.SystemdConfig("/usr/local/sbin/job")
	files["usr/local/sbin/init"] = `#!/bin/sh
# The first process of a machine without systemd.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /dev/mqueue
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t mqueue mqueue /dev/mqueue
mount -t tmpfs run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount --make-rshared /
for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
	echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
done
# The kubelet reads from its own cgroup whether swap can be limited; the root has no such file.
mkdir /sys/fs/cgroup/job
echo $$ >/sys/fs/cgroup/job/cgroup.procs
exec /usr/local/sbin/job </dev/null >/dev/ttyS1 2>&1
`
	files["usr/local/sbin/job"] = `#!/bin/sh
# Runs the job and stops the machine.
export PATH=/usr/local/sbin:/usr/sbin:/usr/bin HOME=/root
hostname modern
modprobe -a virtio_net overlay br_netfilter
mount -t ext4 -o ro ` + programsDisk + ` /programs
mount -t ext4 -o ro ` + jobDisk + ` /job
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
echo 1 >/proc/sys/net/ipv4/ip_forward
if [ -e ` + swapDisk + ` ]; then
	mkswap -q ` + swapDisk + ` && swapon ` + swapDisk + `
fi
cd /out
sh /job/run
code=$?
tar -C /out -cf ` + outDisk + ` .
sync
echo "` + exitLine + `$code"
busybox poweroff -f
`
	files["etc/hosts"] = "127.0.0.1 localhost\n10.0.2.15 modern\n"
	files["etc/resolv.conf"] = "nameserver 10.0.2.3\n"
	files["etc/hostname"] = "modern\n"
	files["etc/nsswitch.conf"] = "passwd: files\ngroup: files\nhosts: files\n"
	return files
}
