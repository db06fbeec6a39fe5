package status_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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

func TestNewNamesTheInvalidField(t *testing.T) {
	for _, tc := range []struct {
		cfg  status.Config
		want string
	}{
		{status.Config{}, "status: Config.Sink is nil"},
		{status.Config{Sink: status.Tee(), Parallel: -1}, "status: Config.Parallel, RetryMin or RetryMax is negative"},
		{status.Config{Sink: status.Tee(), RetryMax: -1}, "status: Config.Parallel, RetryMin or RetryMax is negative"},
		{status.Config{Sink: status.Tee(), RetryMin: 2, RetryMax: 1}, "status: Config.RetryMin is above RetryMax"},
	} {
		_, err := status.New(tc.cfg)
		assert.EqualError(t, err, tc.want)
	}
	_, err := status.New(status.Config{Sink: status.Tee(), RetryMin: time.Hour})
	assert.NoError(t, err)
}

func TestAHundredPodsWithThreeChangesDrainInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t, latency: 50 * time.Millisecond}
		m := started(t, status.Config{Sink: sink})
		var pods []*v1.Pod
		for i := range 100 {
			pods = append(pods, named(podOf(v1.RestartPolicyAlways, "a"), fmt.Sprint("web", i)))
		}
		begin := time.Now()
		for _, observed := range []*runtime.PodStatus{seen(), seen(runningC("a", 0)), seen(exitedC("a", 0, 1))} {
			for _, pod := range pods {
				m.Report(pod, observed, nil, runtime.Termination{})
			}
			require.NoError(t, m.Flush(t.Context())) // so that none is coalesced
		}
		took := time.Since(begin)
		t.Logf("%d calls in %v, at most %d at once", sink.calls, took, sink.most)
		assert.Equal(t, 300, sink.calls)
		assert.Less(t, took, 2500*time.Millisecond)
		assert.Equal(t, 8, sink.most)
		for _, pod := range pods {
			log := sink.took(pod.UID)
			assert.Equal(t, "Running ready=0/1 restarts=0 ip=10.0.0.7", log[len(log)-1])
		}
	})
}

func TestChangesDuringACallAreMergedIntoOneCall(t *testing.T) { // st-47, st-73
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t, latency: time.Second}
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyAlways, "a")
		m.Report(pod, seen(), nil, runtime.Termination{})
		synctest.Wait()
		for n := range int32(5) {
			m.Report(pod, seen(runningC("a", n)), nil, runtime.Termination{})
		}
		require.NoError(t, m.Flush(t.Context()))
		assert.Equal(t, []string{
			"Pending ready=0/1 restarts=0 ip=10.0.0.7",
			"Running ready=1/1 restarts=4 ip=10.0.0.7",
		}, sink.took(pod.UID))

		m.Report(pod, seen(runningC("a", 4)), nil, runtime.Termination{})
		require.NoError(t, m.Flush(t.Context()))
		assert.Equal(t, 2, sink.calls, "no change, no update")
	})
}

func TestAFailingPodDoesNotDelayOthers(t *testing.T) { // st-72, lq-19
	synctest.Test(t, func(t *testing.T) {
		good := new(status.MemorySink)
		bad := named(podOf("", "a"), "bad")
		m := started(t, status.Config{Parallel: 1, Sink: sinkFunc(func(ctx context.Context, pod *v1.Pod, s v1.PodStatus) error {
			if pod.UID == bad.UID {
				return errors.New("poisoned")
			}
			return good.UpdatePodStatus(ctx, pod, s)
		})})
		m.Report(bad, seen(), nil, runtime.Termination{})
		m.Report(podOf("", "a"), seen(), nil, runtime.Termination{})
		synctest.Wait()
		_, ok := good.Status("uid-web")
		assert.True(t, ok)
	})
}

func TestDeletionFollowsTheFinalStatus(t *testing.T) { // st-62, st-80, inv-9, st-70, st-79
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t, latency: time.Second, fail: func(call int) error {
			if call%2 == 1 {
				return errors.New("try again")
			}
			return nil
		}}
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyAlways, "a")
		m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		require.NoError(t, m.Flush(t.Context()))

		pod = pod.DeepCopy()
		pod.DeletionTimestamp = new(metav1.Now())
		m.Report(pod, stopped(exitedC("a", 0, 143)), nil, runtime.Termination{Terminal: true})
		m.Finish(pod)
		m.Finish(pod)
		m.Report(pod, seen(runningC("a", 1)), nil, runtime.Termination{}) // too late
		require.NoError(t, m.Flush(t.Context()))
		want := []string{
			"Running ready=1/1 restarts=0 ip=10.0.0.7",
			"Failed ready=0/1 restarts=0 ip=10.0.0.7",
			"deleted",
		}
		assert.Equal(t, want, sink.took(pod.UID))
		_, ok := m.Status(pod.UID)
		assert.True(t, ok, "known until it is forgotten")

		forget(m, pod.UID)
		forget(m, pod.UID)
		require.NoError(t, m.Flush(t.Context()))
		assert.Equal(t, want, sink.took(pod.UID), "deleted once")
		_, ok = m.Status(pod.UID)
		assert.False(t, ok)
	})
}

func TestAFinishedPodIsDeletedWhenItsDeletionComes(t *testing.T) { // st-54
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t}
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyNever, "a")
		m.Report(pod, stopped(exitedC("a", 0, 0)), nil, runtime.Termination{Terminal: true})
		m.Finish(pod)
		synctest.Wait()
		assert.Equal(t, []string{"Succeeded ready=0/1 restarts=0"}, sink.took(pod.UID), "lq-20: one write")

		pod = pod.DeepCopy()
		pod.DeletionTimestamp = new(metav1.Now())
		m.Report(pod, stopped(), nil, runtime.Termination{})
		synctest.Wait()
		assert.Equal(t, []string{"Succeeded ready=0/1 restarts=0", "deleted"}, sink.took(pod.UID))
	})
}

func TestFinishOfAPodThatWasNeverReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(status.MemorySink)
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyAlways, "a")
		pod.DeletionTimestamp = new(metav1.Now())
		pod.Status = v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{up("a")}}
		m.Finish(pod)
		s, err := sink.WaitDeleted(t.Context(), pod.UID)
		require.NoError(t, err)
		assert.Equal(t, v1.PodFailed, s.Phase)
		assert.Equal(t, int32(137), s.ContainerStatuses[0].State.Terminated.ExitCode)
	})
}

func TestForgetDeliversTheLastStatusFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t, latency: time.Second}
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyNever, "a")
		m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		synctest.Wait()
		m.Report(pod, stopped(exitedC("a", 0, 3)), nil, runtime.Termination{Terminal: true})
		forget(m, pod.UID)
		_, ok := m.Status(pod.UID)
		assert.False(t, ok)
		require.NoError(t, m.Flush(t.Context()))
		assert.Equal(t, []string{
			"Running ready=1/1 restarts=0 ip=10.0.0.7",
			"Failed ready=0/1 restarts=0 ip=10.0.0.7",
			"deleted",
		}, sink.took(pod.UID))

		forget(m, named(podOf(""), "stranger").UID)
		require.NoError(t, m.Flush(t.Context()))
		assert.Equal(t, 3, sink.calls)
	})
}

func TestAPodThatReturnsUnderItsUIDStartsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t, latency: time.Second}
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyNever, "a")
		m.Report(pod, stopped(exitedC("a", 0, 3)), nil, runtime.Termination{Terminal: true})
		m.Finish(pod)
		forget(m, pod.UID)
		m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		s, ok := m.Status(pod.UID)
		assert.True(t, ok)
		assert.Equal(t, v1.PodRunning, s.Phase)
		require.NoError(t, m.Flush(t.Context()))
		assert.Equal(t, []string{
			"Failed ready=0/1 restarts=0",
			"deleted",
			"Running ready=1/1 restarts=0 ip=10.0.0.7",
		}, sink.took(pod.UID), "nothing of either life is lost")
	})
}

func TestATerminalPhaseIsWithheldWhileAContainerRuns(t *testing.T) { // st-75, st-77, inv-6
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t}
		m := started(t, status.Config{Sink: sink})
		pod := podOf(v1.RestartPolicyAlways, "a")
		m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		synctest.Wait()

		evicted := runtime.Termination{Failed: true, Reason: "Evicted", Message: "low on memory"}
		s := m.Report(pod, seen(runningC("a", 0)), nil, evicted)
		assert.Equal(t, v1.PodFailed, s.Phase, "the caller gets it")
		synctest.Wait()
		assert.Equal(t, v1.PodRunning, sink.last[pod.UID].Phase, "the sink is not")
		assert.False(t, status.IsReady(new(sink.last[pod.UID])), "but that it is not ready any more")

		m.Report(pod, nil, nil, evicted) // not observed: still withheld
		synctest.Wait()
		assert.Equal(t, v1.PodRunning, sink.last[pod.UID].Phase)

		m.Report(pod, stopped(exitedC("a", 0, 137)), nil, evicted)
		synctest.Wait()
		assert.Equal(t, "Failed (Evicted: low on memory) ready=0/1 restarts=0 ip=10.0.0.7", status.Summary(new(sink.last[pod.UID])))
	})
}

func TestATerminalPhaseIsWithheldWhileClaimsMayBePrepared(t *testing.T) { // st-77, dra-2
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{t: t}
		prepared := true
		m := started(t, status.Config{Sink: sink, Facts: []func(*status.Facts){func(f *status.Facts) { f.MayHaveResources = prepared }}})
		pod := podOf(v1.RestartPolicyNever, "a")
		m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		synctest.Wait()
		m.Report(pod, stopped(exitedC("a", 0, 0)), nil, runtime.Termination{})
		synctest.Wait()
		assert.Equal(t, v1.PodRunning, sink.last[pod.UID].Phase)
		prepared = false
		m.Report(pod, stopped(exitedC("a", 0, 0)), nil, runtime.Termination{Terminal: true})
		synctest.Wait()
		assert.Equal(t, v1.PodSucceeded, sink.last[pod.UID].Phase)
	})
}

func TestRetainAndFinishReleaseAHeldPhase(t *testing.T) {
	for name, release := range map[string]func(*status.Manager, *v1.Pod){
		"finish": (*status.Manager).Finish,
		"retain": func(m *status.Manager, pod *v1.Pod) { forget(m, pod.UID) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := new(status.MemorySink)
				m := started(t, status.Config{Sink: sink})
				pod := podOf(v1.RestartPolicyNever, "a")
				m.Report(pod, seen(exitedC("a", 0, 0)), nil, runtime.Termination{}) // the sandbox is ready yet
				synctest.Wait()
				s, _ := sink.Status(pod.UID)
				assert.Equal(t, v1.PodPending, s.Phase)
				release(m, pod)
				synctest.Wait()
				s, _ = sink.Status(pod.UID)
				assert.Equal(t, v1.PodSucceeded, s.Phase)
			})
		})
	}
}

func TestAnIllegalTransitionIsRefusedAndLogged(t *testing.T) { // st-50
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var refused []string
		sink := new(status.MemorySink)
		m := started(t, status.Config{
			Sink: sink, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Hooks: status.Hooks{IllegalRestart: func(_ *v1.Pod, err error) { refused = append(refused, err.Error()) }},
		})
		pod := podOf(v1.RestartPolicyOnFailure, "a", "b")
		m.Report(pod, seen(exitedC("a", 0, 0), runningC("b", 0)), nil, runtime.Termination{})
		for range 2 { // an operator has removed a, and the runtime has no record of it
			s := m.Report(pod, seen(runningC("a", 1), exitedC("b", 0, 1)), nil, runtime.Termination{})
			assert.NotNil(t, s.ContainerStatuses[0].State.Terminated, "its end stands")
			assert.NotNil(t, s.ContainerStatuses[1].State.Terminated, "the other's is reported")
			assert.Equal(t, v1.PodRunning, s.Phase)
		}
		synctest.Wait()
		reported, _ := sink.Status(pod.UID)
		assert.NotNil(t, reported.ContainerStatuses[1].State.Terminated)
		assert.Equal(t, []string{"container a exited with code 0 and must not be restarted"}, refused, "once")
		assert.Equal(t, 1, strings.Count(log.String(), "Runtime restarted a terminated container"))

		s := m.Report(pod, seen(runningC("a", 1), exitedC("b", 1, 0)), nil, runtime.Termination{})
		assert.Equal(t, v1.PodSucceeded, s.Phase, "all containers have completed, so the pod has")
		synctest.Wait()
		reported, _ = sink.Status(pod.UID)
		assert.Equal(t, v1.PodRunning, reported.Phase, "which is not published while anything runs (inv-6)")
		m.Report(pod, seen(exitedC("a", 1, 137), exitedC("b", 1, 0)), nil, runtime.Termination{})
		m.Finish(pod)
		synctest.Wait()
		reported, _ = sink.Status(pod.UID)
		assert.Equal(t, v1.PodSucceeded, reported.Phase)
	})
}

func TestAFirstReportCanBeRefusedToo(t *testing.T) { // st-50, after an agent's restart
	m, err := status.New(status.Config{Sink: status.Tee()})
	require.NoError(t, err)
	pod := podOf(v1.RestartPolicyNever, "a")
	pod.Status = v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{done("a", 1)}}
	s := m.Report(pod, seen(runningC("a", 1)), nil, runtime.Termination{})
	assert.Equal(t, v1.PodFailed, s.Phase)
	assert.Equal(t, pod.Status.ContainerStatuses[0].State, s.ContainerStatuses[0].State)
}

func TestProbeResultsAreReadWithEachReport(t *testing.T) { // st-34
	result := runtime.ProbeFailure
	m, err := status.New(status.Config{Sink: status.Tee(), Facts: []func(*status.Facts){func(f *status.Facts) {
		f.Probes = map[string]runtime.ProbeStatus{"a": {Readiness: result}}
	}}})
	require.NoError(t, err)
	pod := podOf("", "a")
	pod.Spec.Containers[0].ReadinessProbe = new(v1.Probe)
	s := m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
	assert.False(t, status.IsReady(&s))
	result = runtime.ProbeSuccess
	s = m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
	assert.True(t, status.IsReady(&s))
}

func TestFlushAfterRunDeliversTheRestOrReportsTheNumberLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		sink := &slowSink{t: t, latency: time.Second, fail: func(int) error {
			if down {
				return errors.New("down")
			}
			return nil
		}}
		m, err := status.New(status.Config{Sink: sink})
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		for i := range 3 {
			m.Report(named(podOf("", "a"), fmt.Sprint("web", i)), seen(), nil, runtime.Termination{})
		}
		require.NoError(t, m.Run(ctx))

		ctx, stop = context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		err = m.Flush(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "status: flush: 3 pods with undelivered statuses")

		down = false
		begin := time.Now()
		require.NoError(t, m.Flush(t.Context()))
		assert.Equal(t, time.Second, time.Since(begin), "back-off does not count")
		assert.Len(t, sink.took("uid-web2"), 1)
	})
}

func TestStatusesAreKeptWithoutRun(t *testing.T) { // st-63
	m, err := status.New(status.Config{Sink: status.Tee()})
	require.NoError(t, err)
	pod := podOf(v1.RestartPolicyAlways, "a")
	m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
	s, ok := m.Status(pod.UID)
	require.True(t, ok)
	assert.Equal(t, v1.PodRunning, s.Phase)
}

func TestTheLatencyOfADeliveryCountsFromTheFirstChangeThatItCarries(t *testing.T) { // st-47, st-69
	synctest.Test(t, func(t *testing.T) {
		var took []time.Duration
		sink := &slowSink{t: t}
		sink.failing(errors.New("away"))
		m := started(t, status.Config{Sink: sink, Hooks: status.Hooks{Delivered: func(i status.DeliveredInfo) {
			if i.Err == nil {
				took = append(took, i.Latency)
			}
		}}})
		pod := podOf(v1.RestartPolicyAlways, "a")
		m.Report(pod, seen(), nil, runtime.Termination{})
		time.Sleep(500 * time.Millisecond)
		m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{})
		sink.failing(nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assert.Equal(t, []time.Duration{time.Second}, took)
	})
}
