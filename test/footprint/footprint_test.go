//go:build unix

package footprint

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

func TestFlags(t *testing.T) {
	kubelet := filepath.Join(t.TempDir(), "kubelet")
	require.NoError(t, os.WriteFile(kubelet, nil, 0o755))
	o, err := parseFlags([]string{"--pods", "0, 10", "--kubelet", kubelet}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, []int{0, 10}, o.pods)
	assert.Equal(t, subjects, o.only)
	for args, want := range map[string]string{
		"--pods=ten":    `--pods="ten": "ten" is not a number from 0 to 1000`,
		"--pods=1001":   "is not a number from 0 to 1000",
		"--only=docker": `"docker" is not one of`,
		"--repeat=0":    "--repeat must be positive",
		"--window=1ms":  "--window at least 1s",
		"--settle=-1s":  "--settle must not be negative",
		"--kills=-1":    "--kills must not be negative",
		"--what":        "--what",
	} {
		_, err := parseFlags([]string{"--kubelet", kubelet, args}, io.Discard)
		assert.ErrorContains(t, err, strings.TrimPrefix(want, "-"), args)
	}
	t.Setenv("KUBEPARTS_CACHE", t.TempDir())
	_, err = parseFlags(nil, io.Discard)
	assert.ErrorContains(t, err, "bash hack/kubelet.sh v")
	_, err = parseFlags([]string{"--only", "kubeparts,bare client"}, io.Discard)
	assert.NoError(t, err)
}

func TestMemory(t *testing.T) {
	got, err := parseMemory([]byte("00400000-7ffc ---p 00000000 00:00 0    [rollup]\nRss:     3000 kB\nPss:     2500 kB\nAnonymous:   1000 kB\n"))
	require.NoError(t, err)
	assert.Equal(t, memory{rss: 3000 << 10, pss: 2500 << 10, anonymous: 1000 << 10, file: 2000 << 10}, got)
	_, err = parseMemory([]byte("Rss:     3000 kB\nPss:     2500 kB\n"))
	assert.EqualError(t, err, `smaps_rollup: no line "Anonymous"`)
}

func TestAProcessIsFoundByItsEnvironment(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("requires /proc")
	}
	assert.Zero(t, findProcess(markVar+"=/no/such/container"))
}

func TestCRICalls(t *testing.T) {
	families, err := parseMetrics(strings.NewReader(`# TYPE grpc_server_started_total counter
grpc_server_started_total{grpc_method="ListContainers",grpc_service="runtime.v1.RuntimeService",grpc_type="unary"} 7
grpc_server_started_total{grpc_method="ListImages",grpc_service="runtime.v1.ImageService",grpc_type="unary"} 2
grpc_server_started_total{grpc_method="GetContainerEvents",grpc_service="runtime.v1.RuntimeService",grpc_type="server_stream"} 1
grpc_server_started_total{grpc_method="List",grpc_service="containerd.services.images.v1.Images",grpc_type="unary"} 100
`))
	require.NoError(t, err)
	assert.Equal(t, criCount{all: 10, lists: 9}, criCalls(families))
	assert.Equal(t, criCount{all: 3, lists: 4}, criCount{all: 10, lists: 9}.minus(criCount{all: 7, lists: 5}))
}

func TestAPIRequestsAreCountedOnce(t *testing.T) {
	n, err := countRequests(strings.NewReader(`{"auditID":"a","stage":"ResponseStarted"}
{"auditID":"a","stage":"ResponseComplete"}
{"auditID":"b","stage":"ResponseComplete"}
{"auditID":"c","st`))
	require.NoError(t, err)
	assert.EqualValues(t, 2, n)
	_, err = countRequests(strings.NewReader("no JSON\n"))
	assert.ErrorContains(t, err, "audit log")
	n, err = apiCalls(filepath.Join(t.TempDir(), "none"))
	assert.NoError(t, err)
	assert.Zero(t, n)
}

func TestVersions(t *testing.T) {
	assert.Equal(t, "v1.37.2", findVersion("Kubernetes v1.37.2\n"))
	assert.Equal(t, "v2.4.2", findVersion("containerd github.com/containerd/containerd/v2 v2.4.2 0123abc"))
	assert.Equal(t, "1.6.20~ds1", findVersion("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+b1"))
	assert.Empty(t, findVersion("v dev"))
}

func TestContainersAreAwaited(t *testing.T) {
	dir := t.TempDir()
	begun := time.Now().Add(-time.Minute)
	for i, name := range []string{"a", "b"} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		require.NoError(t, os.Chtimes(file, begun, begun.Add(time.Duration(i)*time.Second)))
	}
	last, err := awaitStarts(t.Context(), dir, 2)
	require.NoError(t, err)
	assert.Equal(t, time.Second, last.Sub(begun).Round(time.Millisecond))

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = awaitStarts(ctx, dir, 3)
	assert.ErrorContains(t, err, "2 of 3 containers started")
	_, err = awaitRestart(ctx, filepath.Join(dir, "a"), time.Now())
	assert.ErrorContains(t, err, "a does not restart")
	_, err = awaitRestart(t.Context(), filepath.Join(dir, "a"), begun.Add(-time.Second))
	assert.NoError(t, err)
}

func TestExitsInStatuses(t *testing.T) {
	running := v1.ContainerStatus{State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
	again := running
	again.RestartCount = 1
	for _, tc := range []struct {
		statuses []v1.ContainerStatus
		want     bool
	}{{nil, false}, {[]v1.ContainerStatus{running}, false}, {[]v1.ContainerStatus{again}, true}, {[]v1.ContainerStatus{{}}, true}} {
		assert.Equal(t, tc.want, exited(&v1.Pod{Status: v1.PodStatus{ContainerStatuses: tc.statuses}}))
	}
}

func TestReport(t *testing.T) {
	r := &report{
		on: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), values: map[cell][]float64{},
		options:  options{pods: []int{0, 10}, only: subjects, repeat: 3, window: time.Minute, settle: 40 * time.Second},
		versions: map[string]string{"containerd": "v2.4.2", kubeletName: "v1.37.2"}, loads: []float64{0.5, 0.25},
	}
	for _, seconds := range []float64{3, 1, 2} {
		f := figures{allRun: seconds}
		r.add(10, agentName, f)
		f.addIdle(sample{at: r.on}, sample{at: r.on.Add(30 * time.Second), cpu: 300 * time.Millisecond, cri: criCount{10, 4}, api: 7}, false)
		r.add(10, kubeletName, f)
	}
	f := figures{}
	f.addTimes(restart, restartMax, []time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond})
	f.addTimes(statusShown, statusMax, nil)
	f.addMemory(memory{rss: 3 << 20, pss: 2 << 20, anonymous: 1 << 20, file: 2 << 20})
	r.add(0, agentName, f)
	assert.Equal(t, `2026-11-23, static pods, containerd v2.4.2, kubelet v1.37.2. Idle: 1m0s, 40s after the last start. Median of 3 runs, with minimum and maximum. Load average of the machine before the measurements: 0.2 to 0.5.

| 0 pods | kubeparts | kubelet | bare client |
|---|---|---|---|
| RSS | 3.0 MiB | – | – |
| PSS | 2.0 MiB | – | – |
| of RSS, anonymous | 1.0 MiB | – | – |
| of RSS, file-backed | 2.0 MiB | – | – |
| container killed to restarted, median | 2 ms | – | – |
| the same, maximum | 3 ms | – | – |

| 10 pods | kubeparts | kubelet | bare client |
|---|---|---|---|
| start of the program to start of the last container | 2.00 s (1.00 to 3.00) | 2.00 s (1.00 to 3.00) | – |
| idle CPU | – | 10.0 millicores (10.0 to 10.0) | – |
| idle CPU of containerd | – | 0.0 millicores (0.0 to 0.0) | – |
| CRI calls per idle minute | – | 20 (20 to 20) | – |
| of these, lists | – | 8 (8 to 8) | – |
`, r.markdown())
}

func TestTheCPUTimeOfACgroupIsInAFile(t *testing.T) {
	file, unit := cpuFile("12:pids:/a\n4:cpu,cpuacct:/kubepods/pod1/c\n0::/\n")
	assert.Equal(t, "/sys/fs/cgroup/cpuacct/kubepods/pod1/c/cpuacct.usage", file)
	assert.EqualValues(t, 1e9, unit)
	file, _ = cpuFile("nothing")
	assert.Empty(t, file)
	_, err := cgroupCPU(os.Getpid())
	assert.NoError(t, err)
}
