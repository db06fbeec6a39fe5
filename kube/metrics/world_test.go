package metrics_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/kube/metrics/cluster"
	"github.com/kubeparts/kubeparts/kube/metrics/remote"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

var errBroken = errors.New("broken")

// A world is a node whose metrics are all there.
type world struct {
	*metrics.Metrics
	remote  *remote.Metrics
	cluster *cluster.Metrics
	sources metrics.Sources
	pods    *pods
	stats   *usage
}

func newWorld(t testing.TB) world {
	t.Helper()
	m, err := metrics.New(metrics.Config{NodeName: "n1"})
	require.NoError(t, err)
	r, err := remote.New(m)
	require.NoError(t, err)
	c, err := cluster.New(m)
	require.NoError(t, err)
	return world{m, r, c, metrics.Sources{}, new(pods), new(usage)}
}

// scrape returns the response at a path.
func (w world) scrape(t testing.TB, path string) string {
	t.Helper()
	rec := httptest.NewRecorder()
	w.Handlers(w.sources)[path].ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	require.Equal(t, http.StatusOK, rec.Code, rec.Body.String())
	require.True(t, strings.HasPrefix(rec.Header().Get("Content-Type"), "text/plain"))
	return rec.Body.String()
}

// families returns that as a Prometheus reads it.
func (w world) families(t testing.TB, path string) map[string]*dto.MetricFamily {
	t.Helper()
	return parse(t, strings.NewReader(w.scrape(t, path)))
}

func parse(t testing.TB, text io.Reader) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(text)
	require.NoError(t, err)
	return all
}

// lines returns the samples of one family, without their times.
func (w world) lines(t testing.TB, path, name string) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(w.scrape(t, path)) {
		rest, ok := strings.CutPrefix(line, name)
		if ok && (rest[0] == '{' || rest[0] == ' ') {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

func p[T any](v T) *T { return &v }

// web is a pod with all kinds of containers.
func web() *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "prod", UID: "u1"}}
	pod.Spec.HostUsers = p(false)
	pod.Spec.InitContainers = []v1.Container{{Name: "init"}}
	pod.Spec.Containers = []v1.Container{{
		Name: "nginx", Image: "nginx:1", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m")},
			Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m"), v1.ResourceMemory: resource.MustParse("64Mi")},
		},
		Lifecycle: &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 9}}},
	}}
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
	return pod
}

// at is when all was measured.
var at = time.Unix(1_700_000_000, 250_000_000)

// summary is the resource usage of the node and of web.
func summary() *statsapi.Summary {
	now := metav1.NewTime(at)
	cpu := func(n uint64) *statsapi.CPUStats {
		return &statsapi.CPUStats{Time: now, UsageCoreNanoSeconds: p(n), PSI: psi()}
	}
	memory := func(n uint64) *statsapi.MemoryStats {
		return &statsapi.MemoryStats{Time: now, UsageBytes: p(2 * n), WorkingSetBytes: p(n), RSSBytes: p(n / 2), PageFaults: p(uint64(9)), MajorPageFaults: p(uint64(1)), PSI: psi()}
	}
	swap := &statsapi.SwapStats{Time: now, SwapUsageBytes: p(uint64(10)), SwapAvailableBytes: p(uint64(90))}
	disk := statsapi.FsStats{Time: now, CapacityBytes: p(uint64(1000)), AvailableBytes: p(uint64(600)), UsedBytes: p(uint64(400)), Inodes: p(uint64(100)), InodesFree: p(uint64(60)), InodesUsed: p(uint64(40))}
	network := &statsapi.NetworkStats{Time: now, InterfaceStats: statsapi.InterfaceStats{Name: "eth0", RxBytes: p(uint64(1)), RxErrors: p(uint64(2)), TxBytes: p(uint64(3)), TxErrors: p(uint64(4))}}
	io := &statsapi.IOStats{Time: now, PSI: psi()}
	started := metav1.NewTime(at.Add(-time.Hour))
	return &statsapi.Summary{
		Node: statsapi.NodeStats{NodeName: "n1", StartTime: started, CPU: cpu(9e9), Memory: memory(900), Swap: swap, Network: network, Fs: &disk, IO: io},
		Pods: []statsapi.PodStats{{
			PodRef: statsapi.PodReference{Name: "web", Namespace: "prod", UID: "u1"}, StartTime: started,
			CPU: cpu(3e9), Memory: memory(300), Swap: swap, Network: network, IO: io, ProcessStats: &statsapi.ProcessStats{ProcessCount: p(uint64(5))},
			Containers: []statsapi.ContainerStats{{
				Name: "nginx", StartTime: started, CPU: cpu(2e9), Memory: memory(200), Swap: swap, IO: io, Rootfs: &disk, Logs: &disk,
			}},
			VolumeStats: []statsapi.VolumeStats{{Name: "data", FsStats: disk, PVCRef: &statsapi.PVCReference{Name: "claim", Namespace: "prod"}}},
		}},
	}
}

func psi() *statsapi.PSIStats {
	return &statsapi.PSIStats{Some: statsapi.PSIData{Total: 2e9}, Full: statsapi.PSIData{Total: 1e9}}
}

// machine has a disk with a partition, a pod's network and its own.
func machine() fs.FS {
	const header = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		"sys/dev/block/254:0/uevent": file("MAJOR=254\nMINOR=0\nDEVNAME=vda\nDEVTYPE=disk\n"),
		"proc/self/mountinfo": file("22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n" +
			"30 22 0:45 / /var/lib/containerd rw - overlay overlay rw\n31 22 254:2 / /var/lib/containerd rw - ext4 /dev/mapper/a\\040b rw\n" +
			"32 22 0:5 / /var/lib/kube rw - tmpfs tmpfs rw\n"),
		"proc/net/dev":      file(header + "    lo: 9 9 9 9 0 0 0 0 9 9 9 9 0 0 0 0\n  eth0: 100 10 0 1 0 0 0 0 200 20 0 2 0 0 0 0\nveth12: 9 9 9 9 0 0 0 0 9 9 9 9 0 0 0 0\n"),
		"proc/4711/net/dev": file(header + "    lo: 9 9 9 9 0 0 0 0 9 9 9 9 0 0 0 0\n  eth0: 1 5 2 6 0 0 0 0 3 7 4 8 0 0 0 0\n"),
	}
}

// known makes all Sources return values.
func (w world) known() world {
	static := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{runtime.ConfigSourceAnnotation: "file"}}}
	*w.pods = pods{
		desired: []*v1.Pod{web()}, mirrors: map[types.UID]types.UID{"a": "b", "c": ""},
		workers: []podworker.PodState{
			{Pod: web(), State: podworker.Syncing}, {Pod: web(), State: podworker.Syncing}, {Pod: web(), State: podworker.Waiting},
			{Pod: static, State: podworker.Stopping, Removed: true}, {State: podworker.Finished},
		},
	}
	*w.stats = usage{summary: func(context.Context) (*statsapi.Summary, error) { return summary(), nil }, cgroups: true}
	w.sources = metrics.Sources{
		Pods: w.pods, Runtime: runtimePods{{
			UID: "u1", Sandboxes: []runtime.Sandbox{{ID: "s", State: runtime.SandboxReady}},
			Containers: []runtime.Container{{ID: "containerd://new", Name: "nginx", State: runtime.ContainerRunning}, {ID: "containerd://old", Name: "nginx", State: runtime.ContainerExited}},
		}},
		Allocation: parts{}, PodCertificates: parts{}, Volumes: parts{}, Devices: parts{}, Claims: parts{}, Cgroups: parts{}, Stats: w.stats,
		Machine:       metrics.Machine{CPUs: 8, Cores: 4, Sockets: 1, Memory: 1 << 30, Swap: 1, MachineID: "m", SystemUUID: "s", BootID: "b", CgroupVersion: 2},
		Root:          machine(),
		ServerExpires: func() time.Time { return time.Now().Add(time.Hour) },
		ClientExpires: func() time.Time { return time.Time{} },
	}
	return w
}
