package status_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

func TestHooksReportEachChangeAndExitOnce(t *testing.T) { // st-57, st-58
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		var mu sync.Mutex
		add := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, fmt.Sprintf(format, args...))
		}
		m := started(t, status.Config{Sink: &slowSink{t: t, latency: time.Second}, Hooks: status.Hooks{
			Changed: func(i status.ChangedInfo) {
				if d := status.Describe(&i.Old, &i.New); d != nil {
					add("%v", d)
				}
			},
			Terminated: func(i status.TerminatedInfo) { add("%s %s exit %d", i.Type, i.Container, i.Exit.ExitCode) },
			Delivered: func(i status.DeliveredInfo) {
				add("delivered after %v, deleted=%v err=%v", i.Latency, i.Deleted, i.Err)
			},
		}})
		pod := podOf(v1.RestartPolicyAlways, "a")
		m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		time.Sleep(500 * time.Millisecond)
		for range 2 {
			m.Report(pod, seen(exitedC("a", 0, 7)), nil, runtime.Termination{})
			m.Report(pod, seen(exitedC("a", 0, 7)), map[string]v1.ContainerStateWaiting{"a": {Reason: "CrashLoopBackOff", Message: "back-off 10s restarting"}}, runtime.Termination{})
		}
		m.Report(pod, seen(runningC("a", 1), exitedC("a", 0, 7)), nil, runtime.Termination{})
		require.NoError(t, m.Flush(t.Context()))
		assert.Equal(t, []string{
			"[container a runs Running ready=1/1 restarts=0 ip=10.0.0.7]",
			"[container a exited(7) Running ready=0/1 restarts=0 ip=10.0.0.7]",
			"container a exit 7",
			"[container a exited(7), restarting in 10s (CrashLoopBackOff)]",
			"[container a exited(7), restarting in 10s (CrashLoopBackOff)]",
			"[container a started again (restart 1) Running ready=1/1 restarts=1 ip=10.0.0.7]",
			"delivered after 1s, deleted=false err=<nil>",
			"delivered after 1.5s, deleted=false err=<nil>",
		}, lines)
	})
}

func TestTheCallerOwnsTheResultOfReport(t *testing.T) {
	m, err := status.New(status.Config{Sink: status.Tee(), Facts: []func(*status.Facts){func(f *status.Facts) { f.HostIPs = []string{"192.168.0.1"} }}})
	require.NoError(t, err)
	pod := podOf("", "a")
	s := m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
	assert.Equal(t, "192.168.0.1", s.HostIP)
	s.ContainerStatuses[0].State.Running.StartedAt = metav1.Time{}
	s.Conditions[0].Status = "?"
	kept, _ := m.Status(pod.UID)
	assert.NotEqual(t, s, kept)
	kept.Conditions[0].Status = "?"
	again, _ := m.Status(pod.UID)
	assert.NotEqual(t, kept, again)
}

// A sinkFunc is a sink of one func.
type sinkFunc func(context.Context, *v1.Pod, v1.PodStatus) error

func (f sinkFunc) UpdatePodStatus(ctx context.Context, pod *v1.Pod, s v1.PodStatus) error {
	return f(ctx, pod, s)
}
func (f sinkFunc) DeletePod(context.Context, *v1.Pod) error { return nil }
