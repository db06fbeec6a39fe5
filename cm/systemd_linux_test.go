package cm_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	oci "github.com/opencontainers/cgroups"
	ocisystemd "github.com/opencontainers/cgroups/systemd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/runtime"
)

// systemctl returns the output of systemd's tool.
func systemctl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("systemctl", args...).CombinedOutput()
	require.NoError(t, err, "systemctl %v: %s", args, out)
	return string(out)
}

// A slice is the expected content of a unit and its cgroup.
type slice struct{ files, properties map[string]string }

func assertSlices(t *testing.T, tree *host.Tree, want map[string]slice, when string) {
	t.Helper()
	names, keys := slices.Sorted(maps.Keys(want)), []string{"Id"}
	for _, name := range names {
		keys = slices.AppendSeq(keys, maps.Keys(want[name].properties))
	}
	units := strings.Split(systemctl(t, append([]string{"show", "-p", strings.Join(keys, ",")}, names...)...), "\n\n")
	require.Len(t, units, len(names))
	for i, name := range names {
		read := files(tree, cgroups.ParsePath(name, cgroups.Systemd))
		for file, value := range want[name].files {
			assert.Equal(t, value, read(file), "%s: %s %s", when, name, file)
		}
		has := map[string]string{}
		for line := range strings.Lines(units[i]) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			has[key] = value
		}
		require.Equal(t, name, has["Id"])
		for property, value := range want[name].properties {
			assert.Equal(t, value, has[property], "%s: %s %s", when, name, property)
		}
	}
}

// container makes a process one of the pod's, in a scope as runc makes it.
func container(t *testing.T, pod cgroups.Name, id string, limits *oci.Resources) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/busybox", "sleep", "3600")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	m, err := ocisystemd.NewUnifiedManager(&oci.Cgroup{Name: id, ScopePrefix: "cri-containerd", Parent: pod.Slice(), Systemd: true, Resources: limits}, "")
	require.NoError(t, err)
	require.NoError(t, m.Apply(cmd.Process.Pid))
	require.NoError(t, m.Set(limits))
	return cmd
}

// lives reports whether the process is running.
func lives(cmd *exec.Cmd) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "stat"))
	_, state, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// The tree of a node whose runtime has the driver systemd, on a real systemd: each
// value is read from the kernel and from systemd, which must not change it when it
// reloads its units.
func TestSystemdKeepsTheTree(t *testing.T) { // cm-7, cm-10, cm-12 … cm-18, cm-23 … cm-25, cm-38, cm-43 … cm-45
	lab.NeedSystemd(t)
	tree, err := host.New(host.Config{Driver: cgroups.Systemd})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("/run/systemd/system/runtime.slice", []byte("[Unit]\nDescription=agent and runtime\n"), 0o644))
	systemctl(t, "daemon-reload")
	systemctl(t, "start", "runtime.slice")

	var events []runtime.Event
	var repaired []string
	recorded := &ledger{} // on disk
	agent := func() *cm.Manager {
		m, err := cm.New(cm.Config{
			Tree: tree, Driver: cgroups.Systemd, Pods: cm.PodCgroups{Ledger: recorded}, Capacity: list("cpu=4 memory=1Gi pid=32768"),
			Policy:   cm.Policy{PodPids: 1024, Reserve: cgroups.ReserveTiered, HugePageSizes: []int64{2 << 20}},
			Reserved: cm.Reserved{System: list("cpu=500m memory=256Mi pid=768"), Kube: list("cpu=250m memory=128Mi")},
			Enforce: cm.Enforcement{
				Keys: []string{"pods", "system-reserved", "kube-reserved-compressible"},
				// As a kubelet's configuration names them.
				SystemReservedCgroup: "/system.slice", KubeReservedCgroup: "/runtime.slice", CPUs: cpuset.New(0),
			},
			Events: cm.Events{Record: func(e runtime.Event) { events = append(events, e) }},
			Hooks:  cm.Hooks{Repaired: func(name cgroups.Name, changes []cgroups.Change) { repaired = append(repaired, name.String()) }},
		})
		require.NoError(t, err)
		require.NoError(t, m.Setup(t.Context()))
		return m
	}
	m := agent()
	t.Cleanup(func() { assert.NoError(t, tree.Remove(t.Context(), cgroups.Name{"kubepods"})) })
	for _, e := range events {
		assert.Equal(t, "NodeAllocatableEnforced", e.Reason, e.Message)
	}
	g := pod("0a1b2c3d-1111-2222-3333-444455556666", "cpu=505m memory=64Mi / cpu=505m memory=64Mi") // no whole percent
	b, e := pod("b-1", burstable), pod("e-1", besteffort)
	for _, p := range []*v1.Pod{g, b, e} {
		require.NoError(t, m.Ensure(t.Context(), p))
	}
	gSlice, bSlice := m.PodName(g).Slice(), m.PodName(b).Slice()
	assert.Equal(t, "kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice", gSlice)
	want := map[string]slice{
		"kubepods.slice": {
			map[string]string{"cpu.weight": "127", "cpu.max": "max 100000", "memory.max": "671088640", "pids.max": "32000", "memory.min": "100663296", "memory.low": "33554432", "cpuset.cpus": "0"},
			map[string]string{"CPUWeight": "127", "AllowedCPUs": "0", "CPUQuotaPerSecUSec": "infinity", "MemoryMax": "671088640", "TasksMax": "32000", "MemoryMin": "100663296", "MemoryLow": "33554432", "ControlGroup": "/kubepods.slice", "ActiveState": "active"},
		},
		"kubepods-burstable.slice": {
			map[string]string{"cpu.weight": "10", "memory.max": "max", "pids.max": "max", "memory.low": "33554432", "hugetlb.2MB.max": "4611686018427387904"},
			map[string]string{"CPUWeight": "10", "MemoryMax": "infinity", "MemoryLow": "33554432", "ControlGroup": "/kubepods.slice/kubepods-burstable.slice"},
		},
		"kubepods-besteffort.slice": {
			map[string]string{"cpu.weight": "1", "memory.max": "max", "pids.max": "max", "memory.min": "0"},
			map[string]string{"CPUWeight": "1", "MemoryMax": "infinity", "MemoryMin": "0"},
		},
		gSlice: {
			map[string]string{"cpu.weight": "20", "cpu.max": "51000 100000", "memory.max": "67108864", "memory.min": "67108864", "pids.max": "1024", "hugetlb.2MB.max": "0"},
			map[string]string{"CPUWeight": "20", "CPUQuotaPerSecUSec": "510ms", "CPUQuotaPeriodUSec": "100ms", "MemoryMax": "67108864", "MemoryMin": "67108864", "TasksMax": "1024", "ControlGroup": "/kubepods.slice/" + gSlice},
		},
		bSlice: {
			map[string]string{"cpu.weight": "10", "cpu.max": "max 100000", "memory.max": "max", "memory.low": "33554432", "memory.high": "max", "pids.max": "1024"},
			map[string]string{"CPUWeight": "10", "CPUQuotaPerSecUSec": "infinity", "MemoryMax": "infinity", "MemoryLow": "33554432", "TasksMax": "1024", "ControlGroup": "/kubepods.slice/kubepods-burstable.slice/" + bSlice},
		},
		m.PodName(e).Slice(): {
			map[string]string{"cpu.weight": "1", "cpu.max": "max 100000", "memory.max": "max", "pids.max": "1024"},
			map[string]string{"CPUWeight": "1", "MemoryMax": "infinity", "TasksMax": "1024"},
		},
		"system.slice": { // cm-25
			map[string]string{"cpu.weight": "20", "memory.max": "268435456", "pids.max": "768", "cpuset.cpus": "0"},
			map[string]string{"AllowedCPUs": "0", "CPUWeight": "20", "MemoryMax": "268435456", "TasksMax": "768"},
		},
		"runtime.slice": {
			map[string]string{"cpu.weight": "10", "memory.max": "max", "cpuset.cpus": "0"},
			map[string]string{"CPUWeight": "10", "MemoryMax": "infinity"},
		},
	}
	assertSlices(t, tree, want, "made")
	require.NoError(t, m.Sync(t.Context()))
	assert.Empty(t, repaired, "nothing was changed")
	systemctl(t, "daemon-reload")
	assertSlices(t, tree, want, "reloaded")
	for _, p := range []*v1.Pod{g, b, e} {
		_, err := tree.Read(m.PodName(p))
		assert.NoError(t, err, "it is whole")
	}

	// Containers start; the pods' values stay.
	id := "f00dfeed"
	inG := container(t, m.PodName(g), id, &oci.Resources{SkipDevices: true, Memory: 32 << 20, CpuWeight: 20})
	inB := container(t, m.PodName(b), "b0b0", &oci.Resources{SkipDevices: true})
	scope := "cri-containerd-" + id + ".scope"
	want[scope] = slice{nil, map[string]string{"MemoryMax": "33554432", "Delegate": "yes", "Slice": gSlice, "ControlGroup": "/kubepods.slice/" + gSlice + "/" + scope}}
	stats, err := tree.ContainerStats(m.PodName(g), id)
	require.NoError(t, err)
	assert.EqualValues(t, 1, stats.Pids.Current)
	systemctl(t, "daemon-reload")
	assertSlices(t, tree, want, "with containers")
	assert.True(t, lives(inG) && lives(inB))

	// The agent restarts and adopts the existing cgroups.
	m = agent()
	for _, p := range []*v1.Pod{g, b, e} {
		require.NoError(t, m.Ensure(t.Context(), p))
	}
	require.NoError(t, m.Sync(t.Context()))
	assert.Empty(t, repaired)
	assertSlices(t, tree, want, "taken over")
	assert.True(t, lives(inG) && lives(inB))

	// A resize.
	after := v1.ResourceRequirements{Requests: list("cpu=1 memory=128Mi"), Limits: list("cpu=1 memory=128Mi")}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		require.NoError(t, m.Resize(t.Context(), g, name, after)) // cm-43
	}
	want[gSlice] = slice{
		map[string]string{"cpu.weight": "39", "cpu.max": "100000 100000", "memory.max": "134217728", "memory.min": "134217728", "pids.max": "1024", "hugetlb.2MB.max": "0"},
		map[string]string{"CPUWeight": "39", "CPUQuotaPerSecUSec": "1s", "MemoryMax": "134217728", "MemoryMin": "134217728", "TasksMax": "1024"},
	}
	want["kubepods.slice"].files["memory.min"], want["kubepods.slice"].properties["MemoryMin"] = "167772160", "167772160"
	assertSlices(t, tree, want, "resized")
	systemctl(t, "daemon-reload")
	assertSlices(t, tree, want, "resized and reloaded")

	// Another program changes the unit, or the cgroup without systemd.
	systemctl(t, "set-property", "--runtime", gSlice, "MemoryMax=256M", "TasksMax=7")
	require.NoError(t, os.WriteFile(filepath.Join(tree.Dirs(m.PodName(b))[0], "pids.max"), []byte("5"), 0))
	require.NoError(t, m.Sync(t.Context()))
	assert.ElementsMatch(t, []string{m.PodName(g).String(), m.PodName(b).String()}, repaired)
	assertSlices(t, tree, want, "corrected")

	// Pods that are gone: their processes are killed, and systemd drops their slices.
	pods, err := m.Pods()
	require.NoError(t, err)
	assert.Len(t, pods, 3)
	require.NoError(t, m.Retain(t.Context(), func(uid types.UID) bool { return uid != b.UID })) // cm-44
	_ = inB.Wait()
	assert.Equal(t, syscall.SIGKILL, inB.ProcessState.Sys().(syscall.WaitStatus).Signal())
	assert.True(t, lives(inG))
	require.NoError(t, m.Remove(t.Context(), g.UID)) // cm-45
	require.NoError(t, m.Remove(t.Context(), e.UID))
	assert.NoDirExists(t, "/sys/fs/cgroup/kubepods.slice/"+gSlice)
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		left := systemctl(t, "list-units", "--all", "--plain", "--no-legend", "*pod0a1b*", "*podb_1*", "*pode_1*", "cri-containerd-*")
		if strings.TrimSpace(left) == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("systemd keeps units of pods that are gone:\n" + left)
		}
	}
	systemctl(t, "daemon-reload")
	want = map[string]slice{"system.slice": want["system.slice"], "runtime.slice": want["runtime.slice"], "kubepods-besteffort.slice": want["kubepods-besteffort.slice"]}
	assertSlices(t, tree, want, "without pods")
	require.NoError(t, m.Ensure(t.Context(), g), "a UID that comes again")
	require.NoError(t, m.Remove(t.Context(), g.UID))
}
