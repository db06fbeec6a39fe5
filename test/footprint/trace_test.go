//go:build unix

package footprint

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

func TestTheReportOfATrace(t *testing.T) {
	began := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	between := func(a, b int) interval { return interval{at(a), at(b)} }
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod-000-" + nodeName, UID: "u"}}
	tr := newTracer()
	tr.stepped(pipeline.StepInfo{UID: "u", Step: pipeline.AdmitPod, Begin: at(200), End: at(210)})
	tr.stepped(pipeline.StepInfo{UID: "u", Step: pipeline.SyncContainers, Begin: at(210), End: at(500)})
	tr.traced(cri.Trace{Pod: pod, Spans: []cri.Span{
		{Step: "CreatePodSandbox", Begin: at(210), End: at(310)},
		{Step: "StartContainer", Target: "main", Begin: at(310), End: at(500)},
	}})
	tr.synced(podworker.SyncInfo{UID: "u", Pod: pod, First: true, Observed: 50 * time.Millisecond})
	tr.synced(podworker.SyncInfo{UID: "u", Pod: pod})
	tr.calls = map[string][]interval{
		"run_podsandbox":       {between(210, 310), between(250, 350)},
		"start_container":      {between(310, 500)},
		"status":               {between(0, 10), between(900, 910)},
		"get_container_events": {between(0, 900)},
	}
	used := machine{self: time.Second, daemon: 2 * time.Second, busy: 10 * time.Second, idle: 500 * time.Millisecond, flushes: 7, flushing: 20 * time.Millisecond}
	assert.Equal(t, `1 pods, 0.40 s from the start of the program to that of the last container.

| part of the start of a pod | mean | median | maximum | share |
|---|---|---|---|---|
| before the first sync | 150.0 ms | 150.0 ms | 150.0 ms | 37.5 % |
| wait for a status | 50.0 ms | 50.0 ms | 50.0 ms | 12.5 % |
| admit pod | 10.0 ms | 10.0 ms | 10.0 ms | 2.5 % |
| SyncPod: CreatePodSandbox | 100.0 ms | 100.0 ms | 100.0 ms | 25.0 % |
| SyncPod: StartContainer | 90.0 ms | 90.0 ms | 90.0 ms | 22.5 % |
| unattributed | 0.0 ms | 0.0 ms | 0.0 ms | 0.0 % |

| calls in progress that start pods | time | share |
|---|---|---|
| 0 | 210 ms | 52.5 % |
| 1 | 90 ms | 22.5 % |
| 2 to 3 | 100 ms | 25.0 % |

| CRI call | number | mean | sum |
|---|---|---|---|
| run_podsandbox | 2 | 100.0 ms | 0.20 s |
| start_container | 1 | 190.0 ms | 0.19 s |
| status | 1 | 10.0 ms | 0.01 s |

CPU time: node 1.00 s, containerd 2.00 s, other processes (shims, runc, network plugins) 7.00 s; idle 0.50 s. Flushes of disks by all processes: 7, which took 0.02 s.
`, tr.report(began, at(400), map[string]time.Time{"pod-000": at(400)}, used))
}

func TestTheCountersOfTheMachine(t *testing.T) {
	busy, idle, err := parseStat("cpu  10 1 5 100 20 1 2 3 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
	require.NoError(t, err)
	assert.Equal(t, 220*time.Millisecond, busy)
	assert.Equal(t, 1200*time.Millisecond, idle)
	_, _, err = parseStat("intr 1\n")
	assert.ErrorContains(t, err, "is not the first line of /proc/stat")
	n, took := parseFlushes(" 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 975 1200\n 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n 8 1 sda1 1 2 3 4\n")
	assert.EqualValues(t, 975, n)
	assert.Equal(t, 1200*time.Millisecond, took)
}
