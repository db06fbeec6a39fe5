package cri_test

import (
	"errors"
	"io/fs"
	"os"
	goruntime "runtime"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

func TestFactsOfAMachine(t *testing.T) { // se-8, cm-34, cm-37, cm-40
	memory := &fstest.MapFile{Data: []byte("MemTotal:       16384 kB\nMemFree: 1 kB\nSwapTotal:       2048 kB\nHugePages_Total:       0\nodd\n")}
	file, dir := new(fstest.MapFile), &fstest.MapFile{Mode: fs.ModeDir}
	for name, tc := range map[string]struct {
		root fstest.MapFS
		want podconfig.Node
	}{
		"nothing": {fstest.MapFS{}, podconfig.Node{}},
		"cgroup v2": {fstest.MapFS{
			"proc/meminfo": memory, "sys/fs/cgroup/cgroup.controllers": file, "sys/fs/cgroup/system.slice/memory.swap.max": file,
			"sys/kernel/mm/hugepages/hugepages-2048kB": dir, "sys/kernel/mm/hugepages/hugepages-1048576kB": dir,
			"sys/kernel/mm/hugepages/hugepages-64kB": dir, "sys/kernel/mm/hugepages/hugepages-oddkB": dir,
			"sys/devices/system/cpu/cpu0/thermal_throttle": dir, "sys/devices/system/cpu/cpu1/other": dir,
			"sys/devices/system/cpu/cpufreq/thermal_throttle": dir,
		}, podconfig.Node{
			MemoryBytes: 16 << 20, CgroupVersion: 2, Swap: podconfig.Swap{Controller: true, Bytes: 2 << 20},
			HugePageSizes: []int64{64 << 10, 2 << 20, 1 << 30}, Security: podconfig.Security{ThermalThrottleDirs: []string{"/sys/devices/system/cpu/cpu0/thermal_throttle"}},
		}},
		"cgroup v2 without swap": {fstest.MapFS{"sys/fs/cgroup/cgroup.controllers": file}, podconfig.Node{CgroupVersion: 2}},
		"cgroup v1": {fstest.MapFS{
			"proc/meminfo": memory, "sys/fs/cgroup/memory/memory.memsw.limit_in_bytes": file,
		}, podconfig.Node{MemoryBytes: 16 << 20, CgroupVersion: 1, Swap: podconfig.Swap{Controller: true, Bytes: 2 << 20}}},
		"AppArmor": {fstest.MapFS{
			"sys/module/apparmor/parameters/enabled": {Data: []byte("Y\n")}, "proc/sys/kernel/osrelease": {Data: []byte("6.1.0-18-amd64\n")},
		}, podconfig.Node{Security: podconfig.Security{AppArmor: true}, Kernel: "6.1.0-18-amd64"}},
		"AppArmor is disabled": {fstest.MapFS{"sys/module/apparmor/parameters/enabled": {Data: []byte("N\n")}}, podconfig.Node{}},
		"SELinux": {fstest.MapFS{
			"sys/fs/selinux/enforce": file, "proc/self/attr/current": {Data: []byte("system_u:system_r:unconfined_t:s0\x00")},
		}, podconfig.Node{Security: podconfig.Security{SELinux: true}}},
		"SELinux without a policy": {fstest.MapFS{
			"sys/fs/selinux/enforce": file, "proc/self/attr/current": {Data: []byte("kernel\x00")},
		}, podconfig.Node{}},
		"another security module": {fstest.MapFS{"proc/self/attr/current": {Data: []byte("unconfined\n")}}, podconfig.Node{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := cri.ReadFacts(tc.root)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
	_, err := cri.ReadFacts(closed{})
	assert.ErrorContains(t, err, "proc/meminfo")
}

type closed struct{}

func (closed) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("closed")}
}

func TestFactsOfThisMachine(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Skip("reads a Linux machine")
	}
	got, err := cri.ReadFacts(os.DirFS("/"))
	require.NoError(t, err)
	assert.Positive(t, got.MemoryBytes)
}
