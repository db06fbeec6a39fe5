package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
	memory "github.com/kubeparts/kubeparts/status"
)

// A confirming sink writes statuses to a source, as the API server does.
type confirming struct{ source *podsource.Memory }

func (s confirming) UpdatePodStatus(_ context.Context, pod *v1.Pod, status v1.PodStatus) error {
	pod = pod.DeepCopy()
	pod.Status = status
	if memory.Condition(status.Conditions, "example.test/other") == nil {
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: "example.test/other", Status: v1.ConditionTrue})
	}
	time.Sleep(10 * time.Millisecond)
	s.source.Add(pod)
	time.Sleep(time.Millisecond)
	return nil
}

func (confirming) DeletePod(context.Context, *v1.Pod) error { return nil }

// The API server returns a status whose message is masked in the recording: the replayed agent does not write it again.
func TestAMaskedStatusIsConfirmed(t *testing.T) {
	cfg := nodeConfig{latency: 20 * time.Millisecond, seed: 1}
	cfg.adjust = adjusting(func(c *agent.Config) { c.Sink = confirming{c.Sources[podsource.APISource].(*podsource.Memory)} })
	r := open(t, recordNode(t, cfg, func(n node) {
		crash := pod("crash", container("main", "crash"))
		crash.Spec.Containers[0].Env[0].Value = "uid-crash" // the message of the back-off contains it
		n.source.Set(crash)
		time.Sleep(3 * time.Minute)
	}))
	masked := func(f record.Frame) bool {
		if f.Pods == nil || len(f.Pods.Changed) == 0 || len(f.Pods.Changed[0].Status.ContainerStatuses) == 0 {
			return false
		}
		w := f.Pods.Changed[0].Status.ContainerStatuses[0].State.Waiting
		return w != nil && strings.Contains(w.Message, "masked:")
	}
	require.True(t, slices.ContainsFunc(slices.Collect(r.Frames()), masked))
	result, err := replay.Run(t.Context(), r, replay.Options{})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)

	// A status that another writer has changed is written again.
	changed := edited(t, r, func(f *record.Frame) {
		if masked(*f) {
			pod := f.Pods.Changed[0].DeepCopy()
			pod.Status.ContainerStatuses[0].RestartCount += 7
			f.Pods = &record.Pods{Source: f.Pods.Source, Changed: []*v1.Pod{pod}}
		}
	})
	result, err = replay.Run(t.Context(), changed, replay.Options{})
	require.NoError(t, err)
	require.NotNil(t, result.Divergence)
	assert.Equal(t, "statuses", result.Divergence.What)
}

// edited returns a recording whose frames were changed. edit must not change what a frame points to.
func edited(t *testing.T, r *replay.Recording, edit func(*record.Frame)) *replay.Recording {
	t.Helper()
	frames := slices.Collect(r.Frames())
	for i := range frames {
		edit(&frames[i])
	}
	slices.SortStableFunc(frames, func(a, b record.Frame) int { return int(a.At - b.At) })
	out, err := replay.Read(sequence(frames))
	require.NoError(t, err)
	return out
}

// A timeout is rounded to seconds: that of a replayed agent, which takes no time, may differ by one.
func TestATimeoutMayDifferByASecond(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, func(n node) {
		n.source.Set(pod("stubborn", container("main", "stubborn")))
		time.Sleep(10 * time.Second)
		n.source.Add(deleted(pod("stubborn", container("main", "stubborn"))))
		time.Sleep(time.Minute)
	}))
	for timeout, diverges := range map[string]bool{"8": true, "9": false, "10": false, "11": false, "12": true} {
		changed := 0
		edited := edited(t, r, func(f *record.Frame) {
			if f.Call == nil || f.Call.Method != "StopContainer" {
				return
			}
			c := *f.Call
			c.Request = json.RawMessage(strings.ReplaceAll(string(c.Request), `"10"`, `"`+timeout+`"`))
			f.Call = &c
			changed++
		})
		require.NotZero(t, changed)
		result, err := replay.Run(t.Context(), edited, replay.Options{})
		require.NoError(t, err)
		assert.Equal(t, diverges, result.Divergence != nil, "timeout %s: %v", timeout, result.Divergence)
	}
}

// The containers of a pod are stopped concurrently. Calls that fail at once do not
// overlap, but may be made in any order.
func TestConcurrentCallsThatFailAreInAnyOrder(t *testing.T) {
	dir := recordMachine(t, func(m *machine) {
		until := time.Now().Add(12 * time.Second)
		m.fault = func(c fake.Call) (f fake.Fault) {
			if c.Method == "StopContainer" && time.Now().Before(until) {
				f.Err = status.Error(codes.Unavailable, "no connection")
			}
			return f
		}
		m.run(true, func() {
			web := pod("web", container("main", "nginx"), container("other", "nginx"))
			m.source.Set(web)
			time.Sleep(10 * time.Second)
			m.source.Add(deleted(web))
			time.Sleep(time.Minute)
		})
	})
	r, ids := open(t, dir), map[string]bool{}
	failed := func(f record.Frame) bool {
		return f.Call != nil && f.Call.Method == "StopContainer" && f.Call.Error != nil
	}
	for f := range r.Frames() {
		if failed(f) {
			ids[containerID(t, f)] = true
		}
	}
	require.Len(t, ids, 2)
	for later := range ids {
		result, err := replay.Run(t.Context(), edited(t, r, func(f *record.Frame) {
			if failed(*f) && containerID(t, *f) == later {
				f.At += time.Millisecond
			}
		}), replay.Options{})
		require.NoError(t, err)
		assert.Nil(t, result.Divergence, "%v", result.Divergence)
	}
}

func containerID(t *testing.T, f record.Frame) string {
	var request struct{ ContainerID string }
	require.NoError(t, json.Unmarshal(f.Call.Request, &request))
	require.NotEmpty(t, request.ContainerID)
	return request.ContainerID
}

// An overloaded runtime reports an exit seconds after it: until then, the replayed runtime does not either.
func TestALateExitIsReportedWhenItWas(t *testing.T) {
	const shift = 8 * time.Second
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, func(n node) {
		n.source.Set(pod("web", container("main", "nginx")))
		time.Sleep(25 * time.Second)
		require.NoError(t, n.fake.Exit("uid-web", "main", 3))
		time.Sleep(20 * time.Second)
	}))
	earlier := func(s *v1.ContainerState) {
		if s.Terminated != nil {
			s.Terminated.FinishedAt.Time = s.Terminated.FinishedAt.Add(-shift)
		}
	}
	finished := regexp.MustCompile(`"finishedAt": ?"([0-9]+)"`)
	changed := 0
	r = edited(t, r, func(f *record.Frame) {
		switch {
		case f.Status != nil && f.Status.Status != nil:
			s := *f.Status
			s.Status = s.Status.DeepCopy()
			for i := range s.Status.ContainerStatuses {
				earlier(&s.Status.ContainerStatuses[i].State)
				earlier(&s.Status.ContainerStatuses[i].LastTerminationState)
			}
			f.Status = &s
		case f.Call != nil && f.Call.Method == "ContainerStatus":
			c := *f.Call
			c.Answer = finished.ReplaceAllFunc(c.Answer, func(field []byte) []byte {
				at, err := strconv.ParseInt(string(finished.FindSubmatch(field)[1]), 10, 64)
				require.NoError(t, err)
				changed++
				return fmt.Appendf(nil, `"finishedAt":"%d"`, at-int64(shift))
			})
			f.Call = &c
		}
	})
	require.NotZero(t, changed)
	frames := slices.DeleteFunc(slices.Collect(r.Frames()), func(f record.Frame) bool { // the replayed agent lists each second
		return f.Event != nil || f.Call != nil && f.Call.Method == "GetContainerEvents"
	})
	r, err := replay.Read(sequence(frames))
	require.NoError(t, err)
	result, err := replay.Run(t.Context(), r, replay.Options{})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
}

// Why the runtime could not be reached differs from one call to the next.
func TestErrorsOfConnectionsAreEqual(t *testing.T) {
	dir := recordMachine(t, func(m *machine) {
		until := time.Now().Add(20 * time.Second)
		m.fault = func(c fake.Call) (f fake.Fault) {
			if c.Method == "ImageStatus" && time.Now().Before(until) {
				f.Err = status.Error(codes.Unavailable, "no connection")
			}
			return f
		}
		m.run(true, func() {
			m.source.Set(pod("web", container("main", "nginx")))
			time.Sleep(time.Minute)
		})
	})
	changed := 0
	r := edited(t, open(t, dir), func(f *record.Frame) {
		if f.Status == nil || f.Status.Status == nil {
			return
		}
		s := *f.Status
		s.Status = s.Status.DeepCopy()
		if w := s.Status.ContainerStatuses[0].State.Waiting; w != nil && strings.Contains(w.Message, "no connection") {
			w.Message = strings.ReplaceAll(w.Message, "no connection", "broken pipe")
			changed++
		}
		f.Status = &s
	})
	require.NotZero(t, changed)
	result, err := replay.Run(t.Context(), r, replay.Options{})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
}

// A status that was written after a slow write of another one may be written when that began.
func TestAStatusAfterASlowWriteMayBeEarly(t *testing.T) {
	const slow = 6 * time.Second
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, func(n node) {
		n.source.Set(pod("web", container("main", "nginx")))
		time.Sleep(time.Minute)
	}))
	frames := slices.Collect(r.Frames())
	i := slices.IndexFunc(frames, func(f record.Frame) bool { return f.Status != nil && f.Status.Status.Phase == v1.PodRunning })
	require.Positive(t, i)
	before := *frames[i].Status
	before.Status, before.Took = before.Status.DeepCopy(), slow
	before.Status.Phase = v1.PodUnknown
	frames[i].At += slow + time.Millisecond
	frames = append(frames, record.Frame{At: frames[i].At - frames[i].Status.Took, Status: &before})
	slices.SortStableFunc(frames, func(a, b record.Frame) int { return int(a.At - b.At) })
	r, err := replay.Read(sequence(frames))
	require.NoError(t, err)
	result, err := replay.Run(t.Context(), r, replay.Options{})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
}

// A read that is made too early for its recorded counterpart does not have the error of an outage that is over.
func TestAnOutageEnds(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, func(n node) {
		n.source.Set(pod("web", container("main", "nginx")))
		time.Sleep(25 * time.Second)
		require.NoError(t, n.fake.Exit("uid-web", "main", 3))
		time.Sleep(20 * time.Second)
	}))
	frames := slices.Collect(r.Frames())
	i := slices.IndexFunc(frames, func(f record.Frame) bool {
		return f.Call != nil && f.Call.Method == "ListPodSandbox" && strings.Contains(string(f.Call.Request), "uid-web") && f.At > 25*time.Second
	})
	require.Positive(t, i)
	outage := *frames[i].Call
	outage.Answer, outage.Took, outage.Error = nil, 0, &record.Error{Message: "no connection", Code: codes.Unavailable.String()}
	frames[i].At += 300 * time.Millisecond
	frames = append(frames, record.Frame{At: 19 * time.Second, Call: &outage})
	slices.SortStableFunc(frames, func(a, b record.Frame) int { return int(a.At - b.At) })
	r, err := replay.Read(sequence(frames))
	require.NoError(t, err)
	result, err := replay.Run(t.Context(), r, replay.Options{Tolerance: 600 * time.Millisecond})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
}

// A call that was in progress when the recorded process ended has no frame.
func TestACallInProgressAtTheEndIsNotADivergence(t *testing.T) {
	two := pod("two", container("a", "slow"), container("b", "slow"), container("c", "nginx"), container("d", "slow"), container("e", "slow"))
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, func(n node) {
		n.source.Set(two)
		time.Sleep(20 * time.Second)
		n.source.Add(deleted(two))
		time.Sleep(time.Second) // a slow container stops in 4 s
	}))
	result, err := replay.Run(t.Context(), r, replay.Options{})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
	assert.Equal(t, r.Length, result.Until)
}
