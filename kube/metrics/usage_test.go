package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/podworker"
)

// samples are the lines of an answer that are no comments.
func samples(text string) (out []string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// st-16: names, labels, and the time of the measurement, but for starts and limits.
func TestTheResourcesOfANode(t *testing.T) {
	at := at.UnixMilli()
	assert.Equal(t, []string{
		fmt.Sprintf(`container_cpu_usage_seconds_total{container="nginx",namespace="prod",pod="web"} 2 %d`, at),
		fmt.Sprintf(`container_memory_working_set_bytes{container="nginx",namespace="prod",pod="web"} 200 %d`, at),
		`container_start_time_seconds{container="nginx",namespace="prod",pod="web"} 1.69999640025e+09`,
		`container_swap_limit_bytes{container="nginx",namespace="prod",pod="web"} 100`,
		fmt.Sprintf(`container_swap_usage_bytes{container="nginx",namespace="prod",pod="web"} 10 %d`, at),
		fmt.Sprintf(`node_cpu_usage_seconds_total 9 %d`, at),
		fmt.Sprintf(`node_memory_working_set_bytes 900 %d`, at),
		fmt.Sprintf(`node_swap_usage_bytes 10 %d`, at),
		fmt.Sprintf(`pod_cpu_usage_seconds_total{namespace="prod",pod="web"} 3 %d`, at),
		fmt.Sprintf(`pod_memory_working_set_bytes{namespace="prod",pod="web"} 300 %d`, at),
		fmt.Sprintf(`pod_swap_usage_bytes{namespace="prod",pod="web"} 10 %d`, at),
		`resource_scrape_error 0`,
	}, samples(newWorld(t).known().scrape(t, metrics.ResourcePath)))
}

// st-17, oom-3: whose samples they are, and in which units.
func TestTheContainersOfANode(t *testing.T) {
	w := newWorld(t).known()
	const (
		pod       = `container="",id="/kubepods/podu1",image="",name="",namespace="prod",pod="web"`
		container = `container="nginx",id="/kubepods/podu1/new",image="nginx:1",name="new",namespace="prod",pod="web"`
		machine   = `boot_id="b",machine_id="m",system_uuid="s"`
	)
	all := w.scrape(t, metrics.CadvisorPath)
	for _, want := range []string{
		`container_cpu_usage_seconds_total{container="",cpu="total",id="/",image="",name="",namespace="",pod=""} 9 1700000000250`,
		`container_cpu_usage_seconds_total{container="nginx",cpu="total",id="/kubepods/podu1/new",image="nginx:1",name="new",namespace="prod",pod="web"} 2 1700000000250`,
		`container_memory_rss{` + pod + `} 150 1700000000250`,
		`container_memory_working_set_bytes{` + container + `} 200 1700000000250`,
		`container_memory_usage_bytes{` + container + `} 400 1700000000250`,
		`container_cpu_cfs_throttled_seconds_total{` + container + `} 0.5 1700000000250`,
		`container_pressure_cpu_waiting_seconds_total{` + container + `} 2 1700000000250`,
		`container_pressure_cpu_stalled_seconds_total{` + container + `} 1 1700000000250`,
		`container_oom_events_total{` + container + `} 2`,
		`container_threads{` + container + `} 7 1700000000250`,
		`container_threads_max{` + container + `} 100 1700000000250`,
		`container_processes{` + pod + `} 5`,
		`container_start_time_seconds{` + container + `} 1.69999640025e+09`,
		`container_spec_cpu_shares{` + container + `} 256`,
		`container_spec_cpu_quota{` + container + `} 50000`,
		`container_spec_memory_limit_bytes{` + container + `} 6.7108864e+07`,
		`container_network_receive_bytes_total{container="",id="/kubepods/podu1",image="",interface="eth0",name="",namespace="prod",pod="web"} 1 1700000000250`,
		`container_fs_usage_bytes{container="nginx",device="/dev/mapper/a b",id="/kubepods/podu1/new",image="nginx:1",name="new",namespace="prod",pod="web"} 400 1700000000250`,
		`container_fs_usage_bytes{container="",device="/dev/vda1",id="/",image="",name="",namespace="",pod=""} 400 1700000000250`,
		`container_fs_reads_total{container="nginx",device="/dev/vda",id="/kubepods/podu1/new",image="nginx:1",name="new",namespace="prod",pod="web"} 3 1700000000250`,
		`container_fs_writes_bytes_total{container="nginx",device="/dev/vda",id="/kubepods/podu1/new",image="nginx:1",name="new",namespace="prod",pod="web"} 2 1700000000250`,
		`container_fs_reads_total{container="nginx",device="",id="/kubepods/podu1/new",image="nginx:1",name="new",namespace="prod",pod="web"} 11 1700000000250`,
		`container_network_receive_packets_total{container="",id="/",image="",interface="eth0",name="",namespace="",pod=""} 10`,
		`container_network_receive_packets_total{container="",id="/kubepods/podu1",image="",interface="eth0",name="",namespace="prod",pod="web"} 5`,
		`container_network_receive_packets_dropped_total{container="",id="/kubepods/podu1",image="",interface="eth0",name="",namespace="prod",pod="web"} 6`,
		`container_network_transmit_packets_total{container="",id="/kubepods/podu1",image="",interface="eth0",name="",namespace="prod",pod="web"} 7`,
		`container_network_transmit_packets_dropped_total{container="",id="/kubepods/podu1",image="",interface="eth0",name="",namespace="prod",pod="web"} 8`,
		`container_cpu_user_seconds_total{` + container + `} 1.5 1700000000250`,
		`container_cpu_system_seconds_total{` + container + `} 0.5 1700000000250`,
		`container_memory_cache{` + container + `} 50 1700000000250`,
		`container_memory_mapped_file{` + container + `} 20 1700000000250`,
		`container_memory_total_active_file_bytes{` + container + `} 30 1700000000250`,
		`container_memory_total_inactive_file_bytes{` + container + `} 10 1700000000250`,
		`container_memory_kernel_usage{` + container + `} 5 1700000000250`,
		`container_memory_max_usage_bytes{` + container + `} 500 1700000000250`,
		`container_memory_failcnt{` + container + `} 3 1700000000250`,
		`container_processes{` + container + `} 2 1700000000250`,
		`machine_cpu_cores{` + machine + `} 8`,
		`machine_memory_bytes{` + machine + `} 1.073741824e+09`,
		`machine_scrape_error 0`,
	} {
		assert.Contains(t, all, want+"\n")
	}
	assert.NotContains(t, all, `container_threads{container=""`, "of a pod these are no threads of one program")
}

// A pod for which only statistics exist is reported with these.
func TestAnUnknownContainerIsReportedByName(t *testing.T) {
	w := newWorld(t).known()
	w.sources.Runtime, w.sources.Pods, w.stats.cgroups = runtimePods{}, nil, false
	assert.Contains(t, w.scrape(t, metrics.CadvisorPath), `container_memory_rss{container="nginx",id="/podu1/nginx",image="",name="",namespace="prod",pod="web"} 100 1700000000250`)
}

// The network of a pod in the node's is the node's.
func TestThePacketsOfANodeAreNoPods(t *testing.T) {
	w := newWorld(t).known()
	w.pods.desired[0].Spec.HostNetwork = true
	assert.Len(t, w.lines(t, metrics.CadvisorPath, "container_network_receive_packets_total"), 1)
	w.sources.Root = nil
	assert.Empty(t, w.lines(t, metrics.CadvisorPath, "container_network_receive_packets_total"))
	assert.Equal(t, []string{`container_fs_reads_total{container="nginx",device="",id="/kubepods/podu1/new",image="nginx:1",name="new",namespace="prod",pod="web"} 14 1700000000250`},
		w.lines(t, metrics.CadvisorPath, "container_fs_reads_total")[1:], "without names they are one")
}

// A missing number is absent, never zero.
func TestMissingValuesAreAbsent(t *testing.T) {
	w := newWorld(t).known()
	w.stats.set(&statsapi.Summary{Pods: []statsapi.PodStats{{Containers: []statsapi.ContainerStats{{Name: "c", CPU: new(statsapi.CPUStats), Memory: new(statsapi.MemoryStats), Swap: new(statsapi.SwapStats)}}}}}, nil)
	assert.Equal(t, []string{"resource_scrape_error 0"}, samples(w.scrape(t, metrics.ResourcePath)))
}

// What many pods use is many series, and no more than that.
func TestAScrapeOfManyPods(t *testing.T) {
	w := newWorld(t).known()
	w.stats.set(busy(110), nil)
	all := w.families(t, metrics.CadvisorPath)
	require.Len(t, all["container_memory_rss"].GetMetric(), 1+2*110)
}

// busy is a summary of n pods.
func busy(n int) *statsapi.Summary {
	s := summary()
	one := s.Pods[0]
	s.Pods = nil
	for i := range n {
		one.PodRef.Name, one.PodRef.UID = fmt.Sprintf("web-%d", i), string(types.UID(fmt.Sprintf("u%d", i)))
		s.Pods = append(s.Pods, one)
	}
	return s
}

// stats-16: a pod whose processes cannot be killed has the name of its successor, which may
// run on another node.
func TestADeletedPodThatHangsIsNotReportedAsItsSuccessor(t *testing.T) {
	pod := func(uid string, cpu uint64, started time.Time) statsapi.PodStats {
		s := summary().Pods[0]
		s.PodRef.UID, s.StartTime, s.Containers = uid, metav1.NewTime(started), nil
		s.CPU, s.Memory, s.Swap = &statsapi.CPUStats{Time: metav1.NewTime(at), UsageCoreNanoSeconds: &cpu}, nil, nil
		return s
	}
	hanging, successor := pod("a-old", 9e9, at.Add(-time.Hour)), pod("b-new", 1e9, at)
	desired := func(uids ...types.UID) *pods {
		out := new(pods)
		for _, uid := range uids {
			pod := web()
			if pod.UID = uid; uid == "a-old" {
				pod.DeletionTimestamp = p(metav1.NewTime(at))
			}
			out.desired = append(out.desired, pod)
		}
		return out
	}
	removed := &pods{workers: []podworker.PodState{{UID: "a-old", State: podworker.Stopping, Removed: true}, {UID: "b-new", State: podworker.Syncing}}}
	for name, tc := range map[string]struct {
		stats   []statsapi.PodStats
		sources metrics.Sources
		want    string
	}{
		"beside":                {[]statsapi.PodStats{hanging, successor}, metrics.Sources{Pods: desired("b-new")}, "1"},
		"instead":               {[]statsapi.PodStats{hanging}, metrics.Sources{Pods: desired("b-new")}, ""},
		"on another node":       {[]statsapi.PodStats{hanging}, metrics.Sources{Pods: removed}, ""},
		"being deleted":         {[]statsapi.PodStats{hanging}, metrics.Sources{Pods: desired("a-old")}, "9"},
		"both in sources":       {[]statsapi.PodStats{hanging, successor}, metrics.Sources{Pods: desired("a-old", "b-new")}, "1"},
		"before the first sync": {[]statsapi.PodStats{successor}, metrics.Sources{Pods: desired()}, "1"},
		"of a provider":         {[]statsapi.PodStats{hanging, successor}, metrics.Sources{}, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sources = tc.sources
			w.stats.set(&statsapi.Summary{Pods: tc.stats}, nil)
			w.sources.Stats = w.stats
			var got string
			for _, line := range w.lines(t, metrics.ResourcePath, "pod_cpu_usage_seconds_total") {
				got += strings.Fields(line)[1]
			}
			assert.Equal(t, tc.want, got)
		})
	}
}
