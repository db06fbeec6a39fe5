package kubelet

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// kubectl top reports the usage of this node and its pods: a metrics-server reads it
// from the node, and it matches the kernel's numbers.
func TestIntegrationClusterObserved(t *testing.T) {
	if os.Getenv("KUBEPARTS_OBSERVE") != "1" {
		t.Skip("metrics-server takes long to build: bash .ci/run observe does so, and runs this test")
	}
	config := filepath.Join(t.TempDir(), "kubelet.yaml")
	require.NoError(t, os.WriteFile(config, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard: {} # however full the disk is\n"), 0o600))
	w := onCluster(t, "--config="+config)
	w.control.MetricsServer()
	d := desk{room: w.room(t, "observed"), kubectl: lab.NewKubectl(t, w.control.Kubeconfig)}
	pod := d.worker()
	id := map[string]string{}
	for _, s := range pod.Status.ContainerStatuses {
		_, id[s.Name], _ = strings.Cut(s.ContainerID, "://")
	}
	kernel := &kernelCPU{file: cgroupFile(t, id["busy"], "cpuacct.usage", "cpu.stat")}
	t.Run("CPU usage of a container", func(t *testing.T) { d.topCPU(t, kernel) })
	t.Run("memory usage of containers", func(t *testing.T) { d.topMemory(t, id) })
	t.Run("usage of the node", d.topNode)
	t.Run("values of labels", d.labelsSay)
}

// worker creates a pod that uses the CPU in one container, and memory in another.
func (d desk) worker() *v1.Pod {
	d.t.Helper()
	s := spec("while :; do :; done")
	s.Containers[0].Name = "busy"
	s.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse("200m")}
	full := spec("dd if=/dev/zero of=/dev/shm/full bs=1M count=40; touch /dev/shm/done; exec sleep 3600").Containers[0]
	full.Name = "full"
	s.Containers = append(s.Containers, full)
	s.TerminationGracePeriodSeconds = new(int64)
	d.make("top", s)
	return d.untilPhase("top", v1.PodRunning)
}

// podMetrics is the metrics API's object for a pod.
type podMetrics struct {
	Timestamp  metav1.Time
	Window     metav1.Duration
	Containers []struct {
		Name  string
		Usage v1.ResourceList
	}
}

// topCPU: the rate matches the kernel's counter in the window of the metrics-server.
func (d desk) topCPU(t *testing.T, kernel *kernelCPU) {
	d.until("kubectl top has the CPU of a container", func() error {
		kernel.read(t)
		was := d.with("", "get", "--raw", "/apis/metrics.k8s.io/v1beta1/namespaces/"+d.name+"/pods/top")
		var has podMetrics
		if err := json.Unmarshal([]byte(was.out), &has); err != nil {
			return fmt.Errorf("%w: %+v", err, was)
		}
		for _, c := range has.Containers {
			if c.Name != "busy" {
				continue
			}
			reported := c.Usage.Cpu().AsApproximateFloat64()
			real, err := kernel.rate(has.Timestamp.Add(-has.Window.Duration), has.Timestamp.Time)
			if err == nil && math.Abs(reported-real) > 0.02+real/4 {
				err = fmt.Errorf("it reports %v, and the kernel %v of the %v before %v", reported, real, has.Window.Duration, has.Timestamp)
			}
			if err == nil {
				t.Logf("busy used %.3f CPUs, by the kernel %.3f, in %v", reported, real, has.Window.Duration)
			}
			return err
		}
		return fmt.Errorf("the container is missing: %s", was.out)
	})
}

// topMemory: the figures are the working sets of the kernel.
func (d desk) topMemory(t *testing.T, id map[string]string) {
	for _, name := range []string{"busy", "full"} {
		d.until("kubectl top has the memory of "+name, func() error {
			was := d.with("", "top", "pod", "top", "--containers", "--no-headers")
			for line := range strings.Lines(was.out) {
				f := strings.Fields(line) // pod, container, CPU, memory
				if len(f) != 4 || f[1] != name {
					continue
				}
				reported, err := resource.ParseQuantity(f[3])
				if err != nil {
					return err
				}
				const mega = 1 << 20
				real := workingSet(t, id[name])
				if name == "full" && real < 40*mega {
					return fmt.Errorf("the container has %d bytes yet", real)
				}
				if diff := reported.Value() - real; diff < -2*mega || diff > 2*mega { // it prints whole MiB
					return fmt.Errorf("it reports %s, and the kernel %d", f[3], real)
				}
				t.Logf("%s has %s, by the kernel %.1f Mi; CPU %s", name, f[3], float64(real)/mega, f[2])
				return nil
			}
			return fmt.Errorf("the container is missing: %+v", was)
		})
	}
}

// topNode: the memory matches /proc/meminfo, approximately, since the usage of others
// varies.
func (d desk) topNode(t *testing.T) {
	d.until("kubectl top has the node", func() error {
		was := d.with("", "top", "node", "node", "--no-headers")
		f := strings.Fields(was.out) // name, CPU, %, memory, %
		if was.code != 0 || len(f) != 5 || f[0] != "node" {
			return fmt.Errorf("%+v", was)
		}
		cpu, err := resource.ParseQuantity(f[1])
		if err != nil || cpu.IsZero() {
			return fmt.Errorf("it uses %s of CPUs: %w", f[1], err)
		}
		reported, err := resource.ParseQuantity(f[3])
		if err != nil {
			return err
		}
		mem := numbers(t, "/proc/meminfo")
		real := float64(mem["MemTotal:"]-mem["MemFree:"]-mem["Inactive(file):"]) * 1024
		if diff := math.Abs(reported.AsApproximateFloat64() - real); diff > real/5 {
			return fmt.Errorf("it reports %s of memory, and the kernel %.0f", f[3], real)
		}
		t.Logf("the node uses %s CPUs and %s of memory, by the kernel %.0f Mi", f[1], f[3], real/(1<<20))
		return nil
	})
	assert.Contains(t, d.ok("top", "pod", "--all-namespaces", "--sum"), "top ")
}

// labelsSay: the values of labels are the kubelet's, for labels with a finite set of
// values.
func (d desk) labelsSay(t *testing.T) {
	list, err := os.ReadFile(filepath.Join("..", "..", "kube", "metrics", "testdata", "values.txt"))
	require.NoError(t, err)
	may := map[[2]string][]string{}
	for line := range strings.Lines(string(list)) {
		if f := strings.Split(strings.TrimSpace(line), "|"); !strings.HasPrefix(line, "#") {
			require.Len(t, f, 5)
			for _, v := range strings.Fields(f[2] + " " + f[3]) {
				may[[2]string{f[0], f[1]}] = append(may[[2]string{f[0], f[1]}], strings.Trim(v, `"`))
			}
		}
	}
	for _, path := range []string{"/metrics", "/metrics/cadvisor", "/metrics/resource", "/metrics/probes", "/metrics/slis"} {
		all, err := parsed([]byte(d.ok("get", "--raw", "/api/v1/nodes/node/proxy"+path)))
		require.NoError(t, err, path)
		for name, family := range all {
			for _, m := range family.GetMetric() {
				for _, l := range m.GetLabel() {
					if of := may[[2]string{name, l.GetName()}]; of != nil && !slices.Contains(of, l.GetValue()) {
						t.Errorf("%s of %s at %s is %q", l.GetName(), name, path, l.GetValue())
					}
				}
			}
		}
		if family := all["container_fs_reads_total"]; family != nil {
			for _, m := range family.GetMetric() {
				for _, l := range m.GetLabel() {
					assert.False(t, l.GetName() == "device" && l.GetValue() == "", "a disk has no name: %v", m)
				}
			}
		}
	}
}

// cgroupFile returns the first of the files that exists in the container's cgroup,
// which is found by the container's ID.
func cgroupFile(t *testing.T, id string, names ...string) (file string) {
	t.Helper()
	require.NotEmpty(t, id)
	for _, name := range names {
		err := filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() || !strings.Contains(e.Name(), id) {
				return nil // other cgroups may disappear meanwhile
			}
			if _, err := os.Stat(filepath.Join(path, name)); err == nil {
				file = filepath.Join(path, name)
				return fs.SkipAll
			}
			return nil
		})
		require.NoError(t, err)
		if file != "" {
			return file
		}
	}
	require.Fail(t, "there is no such cgroup", "%s with one of %v", id, names)
	return ""
}

// workingSet is the memory in use without inactive file cache.
func workingSet(t *testing.T, id string) int64 {
	t.Helper()
	dir := filepath.Dir(cgroupFile(t, id, "memory.usage_in_bytes", "memory.current"))
	stat := numbers(t, filepath.Join(dir, "memory.stat"))
	if usage, err := os.ReadFile(filepath.Join(dir, "memory.usage_in_bytes")); err == nil {
		return number(t, string(usage)) - stat["total_inactive_file"]
	}
	usage, err := os.ReadFile(filepath.Join(dir, "memory.current"))
	require.NoError(t, err)
	return number(t, string(usage)) - stat["inactive_file"]
}

// A kernelCPU records samples of a cgroup's CPU time.
type kernelCPU struct {
	file  string
	at    []time.Time
	nanos []float64
}

func (k *kernelCPU) read(t *testing.T) {
	t.Helper()
	now := time.Now()
	if filepath.Base(k.file) == "cpu.stat" {
		k.nanos = append(k.nanos, float64(numbers(t, k.file)["usage_usec"])*1000)
	} else {
		text, err := os.ReadFile(k.file)
		require.NoError(t, err)
		k.nanos = append(k.nanos, float64(number(t, string(text))))
	}
	k.at = append(k.at, now)
}

// rate is the number of CPUs used between two times, both of which were sampled.
func (k *kernelCPU) rate(from, to time.Time) (float64, error) {
	used := func(at time.Time) (float64, error) {
		for i := 1; i < len(k.at); i++ {
			if a, b := k.at[i-1], k.at[i]; !at.Before(a) && !at.After(b) {
				share := at.Sub(a).Seconds() / b.Sub(a).Seconds()
				return k.nanos[i-1] + share*(k.nanos[i]-k.nanos[i-1]), nil
			}
		}
		return 0, fmt.Errorf("no measurement at %v", at)
	}
	a, err := used(from)
	if err != nil {
		return 0, err
	}
	b, err := used(to)
	return (b - a) / 1e9 / to.Sub(from).Seconds(), err
}

// numbers reads a file of keys with a number each.
func numbers(t *testing.T, file string) map[string]int64 {
	t.Helper()
	text, err := os.Open(file)
	require.NoError(t, err)
	defer text.Close()
	all := map[string]int64{}
	for lines := bufio.NewScanner(text); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) >= 2 {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				all[f[0]] = n
			}
		}
	}
	return all
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	require.NoError(t, err)
	return n
}
