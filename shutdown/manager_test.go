package shutdown_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/shutdown"
)

// twoGroups have 20 and 10 seconds.
var twoGroups = shutdown.Policy{Groups: []shutdown.Group{{0, 20 * s}, {2_000_000_000, 10 * s}}}

func webAndDNS() []*v1.Pod { return []*v1.Pod{podOf("web", 0, 30), podOf("dns", 2_000_000_000, 5)} }

func TestPodsEndInOrder(t *testing.T) { // sh-5, sh-6, sh-7, sh-8
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups, all: append(webAndDNS(), podOf("job", 5, 60)), takes: map[string]time.Duration{"job": 7 * s}}
		m.run()
		require.NoError(t, m.Err())
		require.Nil(t, m.Admit(t.Context(), nil))
		assert.Equal(t, 8*s, m.stop())
		assert.Equal(t, []string{
			"0s node: node is shutting down",
			"0s event node Normal Shutdown: Shutdown manager detected shutdown event",
			"0s report job unready true", "0s report web unready true",
		}, m.lines()[:4])
		assert.ElementsMatch(t, []string{"0s kill web within 20", "0s kill job within 20"}, m.lines()[4:6], "in parallel")
		assert.Equal(t, []string{
			"1s ended web", "7s ended job",
			"7s report dns unready true", "7s kill dns within 5", "8s ended dns",
			"8s recorded",
		}, m.lines()[6:])
		require.ErrorIs(t, m.Err(), shutdown.ErrShuttingDown)
		assert.Equal(t, &runtime.Rejection{Reason: "NodeShutdown", Message: "Pod was rejected as the node is shutting down."}, m.Admit(t.Context(), nil))
	})
}

func TestAGroupThatIsEmptyTakesNoTime(t *testing.T) { // sh-7
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups, all: webAndDNS()[1:]}
		m.run()
		assert.Equal(t, s, m.stop())
	})
}

func TestAPodThatDoesNotEndCostsItsGroupsTimeAndNoMore(t *testing.T) { // sh-10, nq-14
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups, all: webAndDNS(), takes: map[string]time.Duration{"web": time.Hour}}
		m.run()
		assert.Equal(t, 21*s, m.stop())
		assert.Equal(t, []string{"0s kill web within 20", "20s gave up web", "20s kill dns within 5", "21s ended dns"}, m.lines("kill", "gave", "ended"))
	})
}

func TestShutdownWaitsForVolumes(t *testing.T) { // sh-10
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups, all: webAndDNS(), unmount: map[string]time.Duration{"web": 4 * s, "dns": time.Hour}}
		m.run()
		assert.Equal(t, 15*s, m.stop(), "1 s and 4 s of web, 10 s of dns's group")
	})
}

// Time that one group does not use is available to the next ones; all together have no
// more than the sum.
func TestUnusedTimeIsCarriedOver(t *testing.T) {
	policy := shutdown.Policy{Groups: []shutdown.Group{{0, 10 * s}, {10, 10 * s}, {20, 10 * s}}}
	for name, tc := range map[string]struct {
		carry bool
		pods  []*v1.Pod
		takes map[string]time.Duration
		kills []string
		took  time.Duration
	}{
		"not by default": {
			pods: []*v1.Pod{podOf("a", 0, 60), podOf("c", 20, 60)}, takes: map[string]time.Duration{"c": time.Hour},
			kills: []string{"0s kill a within 10", "1s kill c within 10"}, took: 11 * s,
		},
		"of one that was quick": {
			carry: true, pods: []*v1.Pod{podOf("a", 0, 60), podOf("b", 10, 60)}, takes: map[string]time.Duration{"b": 18 * s},
			kills: []string{"0s kill a within 10", "1s kill b within 19"}, took: 19 * s,
		},
		"of one that is empty": {
			carry: true, pods: []*v1.Pod{podOf("c", 20, 60)}, takes: map[string]time.Duration{"c": time.Hour},
			kills: []string{"0s kill c within 30"}, took: 30 * s,
		},
		"not more than a pod's own": {
			carry: true, pods: []*v1.Pod{podOf("a", 0, 60), podOf("b", 10, 15)},
			kills: []string{"0s kill a within 10", "1s kill b within 15"}, took: 2 * s,
		},
		"never above the sum": {
			carry: true, pods: []*v1.Pod{podOf("a", 0, 60), podOf("b", 10, 60), podOf("c", 20, 60)},
			takes: map[string]time.Duration{"a": 3 * s, "b": time.Hour, "c": time.Hour},
			kills: []string{"0s kill a within 10", "3s kill b within 17", "20s kill c within 10"}, took: 30 * s,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &machine{t: t, policy: policy, all: tc.pods, takes: tc.takes}
				m.policy.CarryOver = tc.carry
				m.run()
				assert.Equal(t, tc.took, m.stop())
				assert.Equal(t, tc.kills, m.lines("kill"))
			})
		})
	}
}

// First the status reports the pods as not ready, then clients get time to stop
// sending traffic, then the pods terminate.
func TestPodsAreReportedNotReadyBeforeTheyTerminate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups, all: webAndDNS(), sink: 2 * s}
		m.policy.Propagation = 8 * s
		m.run()
		assert.Equal(t, 24*s, m.stop())
		assert.Equal(t, []string{
			"0s report web unready true", "2s recorded", "10s kill web within 18", "11s ended web",
			"11s report dns unready true", "13s recorded", "21s kill dns within 5", "22s ended dns", "24s recorded",
		}, m.lines("report", "recorded", "kill", "ended"))
	})
}

func TestAnUnwritableStatusDoesNotTakeThePodsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups, all: webAndDNS()[:1], sink: time.Hour}
		m.policy.Propagation = 8 * s
		m.run()
		assert.Equal(t, 46*s, m.stop(), "32 s of it for the final statuses")
		assert.Equal(t, []string{"0s report web unready true", "5s not recorded", "13s kill web within 15", "14s ended web", "46s not recorded"},
			m.lines("report", "not", "kill", "ended"))
	})
}

// The machine waits until the sink has accepted the final statuses, however slow it
// is, but no longer than it would have waited for pods.
func TestTheMachineWaitsForTheLastStatuses(t *testing.T) { // sh-12
	for name, tc := range map[string]struct {
		sink, flush time.Duration
		took        time.Duration
		last        string
	}{
		"a slow sink":             {sink: 12 * s, took: 13 * s, last: "13s recorded"},
		"one that does not take":  {sink: time.Hour, took: 30 * s, last: "30s not recorded"},
		"which has time it needs": {sink: 31 * s, flush: 3 * s, took: 32 * s, last: "32s recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &machine{t: t, policy: twoGroups, all: webAndDNS()[:1], sink: tc.sink}
				m.policy.Flush = tc.flush
				var info shutdown.EndedInfo
				m.hooks.Ended = func(i shutdown.EndedInfo) { info = i }
				m.run()
				assert.Equal(t, tc.took, m.stop())
				lines := m.lines()
				assert.Equal(t, tc.last, lines[len(lines)-1])
				assert.Equal(t, 1, info.Pods)
				assert.Equal(t, tc.took, info.Duration)
				if tc.sink == time.Hour {
					assert.ErrorIs(t, info.FlushErr, context.DeadlineExceeded)
				} else {
					assert.NoError(t, info.FlushErr)
				}
			})
		})
	}
}

// A pod that ignores SIGTERM is killed at the moment its group's time is over, and its
// final status follows.
func TestTheLastStatusOfAPodThatWasKilledIsRecorded(t *testing.T) { // sh-12
	for flush, want := range map[time.Duration][]string{
		5 * s: {"10.1s recorded", "12.2s recorded"},
		1 * s: {"10.1s recorded", "11s not recorded"}, // it was waited for as long as may be
		0:     {"10s not recorded"},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &machine{t: t, policy: twoGroups, all: webAndDNS()[1:], takes: map[string]time.Duration{"dns": time.Hour}, unmount: map[string]time.Duration{"dns": 2 * s}, sink: s / 10}
			m.policy.Groups, m.policy.Flush = []shutdown.Group{{Priority: 0, Period: 10 * s}}, flush
			m.run()
			m.stop()
			assert.Equal(t, want, m.lines("recorded", "not"))
		})
	}
}

func TestACanceledShutdownReopensTheNode(t *testing.T) { // sh-5
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups, all: append(webAndDNS(), podOf("slow", 0, 60)), takes: map[string]time.Duration{"slow": 15 * s}}
		m.run()
		m.begin()
		time.Sleep(5 * s)
		m.manual.Cancel()
		synctest.Wait()
		require.NoError(t, m.Err())
		require.Nil(t, m.Admit(t.Context(), nil))
		assert.Equal(t, []string{
			"5s gave up slow",
			"5s node: <nil>",
			"5s event node Normal Shutdown: Shutdown manager detected shutdown cancellation",
			"5s report slow unready false",
		}, m.lines()[len(m.lines())-4:])
		time.Sleep(time.Minute)
		assert.NotContains(t, m.lines(), "kill dns within 5", "pods that were not terminated continue")

		// The next one is a shutdown like the first.
		m.takes = nil
		assert.Equal(t, 2*s, m.stop())
		assert.Equal(t, []string{"0s kill slow within 20", "1s kill dns within 5"}, m.lines("kill")[2:])
	})
}

func TestACompletedShutdownCanBeCanceled(t *testing.T) { // sh-5
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups, all: webAndDNS()}
		m.run()
		m.stop()
		time.Sleep(s)
		m.manual.Cancel()
		synctest.Wait()
		require.NoError(t, m.Err())
	})
}

func TestALatePodTerminatesWithTheNextGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups, all: webAndDNS(), takes: map[string]time.Duration{"web": 3 * s}}
		m.run()
		m.begin()
		time.Sleep(s)
		m.add(podOf("late", 0, 30))
		<-m.manual.Stop(time.Time{})
		assert.ElementsMatch(t, []string{"0s kill web within 20", "3s kill dns within 5", "3s kill late within 10"}, m.lines("kill"))
	})
}

func TestWithoutAPolicyNothingIsDone(t *testing.T) { // sh-1
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, all: webAndDNS()}
		m.run()
		m.begin()
		time.Sleep(time.Minute)
		require.NoError(t, m.Err())
		require.Nil(t, m.Admit(t.Context(), nil))
		assert.Empty(t, m.lines())
	})
}

// A broken trigger is retried after a second, and less often from then on.
type broken struct {
	mu sync.Mutex
	at []time.Time
}

func (b *broken) Watch(context.Context, time.Duration, func(shutdown.Notice)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = append(b.at, time.Now())
	return errors.New("no bus")
}

func TestAFailedTriggerIsRetried(t *testing.T) { // sh-4
	synctest.Test(t, func(t *testing.T) {
		b := new(broken)
		m := &machine{t: t, policy: twoGroups, all: webAndDNS(), triggers: []shutdown.Trigger{b}}
		m.run()
		time.Sleep(100*s + s/2)
		b.mu.Lock()
		var waits []time.Duration
		for i := range b.at[1:] {
			waits = append(waits, b.at[i+1].Sub(b.at[i]))
		}
		assert.Equal(t, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s}, waits)
		b.mu.Unlock()
		assert.Equal(t, 2*s, m.stop(), "the others are not affected")
	})
}

func TestAShutdownEndsWhenNoTriggerReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := new(shutdown.Manual)
		m := &machine{t: t, policy: twoGroups, all: webAndDNS(), triggers: []shutdown.Trigger{other}}
		m.run()
		m.stop()
		select {
		case <-other.Stop(time.Time{}): // all is done already: it need not wait
		case <-time.After(time.Minute):
			t.Fatal("it waits")
		}
		m.manual.Cancel()
		synctest.Wait()
		require.ErrorIs(t, m.Err(), shutdown.ErrShuttingDown)
		other.Cancel()
		synctest.Wait()
		require.NoError(t, m.Err())
	})
}

func TestAReclaimedMachineDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups, all: webAndDNS(), takes: map[string]time.Duration{"web": time.Hour, "dns": time.Hour}}
		m.run()
		m.begun = time.Now()
		<-m.manual.Stop(time.Now().Add(15 * s))
		assert.Equal(t, 15*s, time.Since(m.begun))
		assert.Equal(t, []string{"0s kill web within 10", "10s kill dns within 5"}, m.lines("kill"))
	})
}

// An earlier deadline, from any trigger, shortens the remaining time; a later one or
// none changes nothing.
func TestAnEarlierDeadlineShortensTheRest(t *testing.T) {
	hour := map[string]time.Duration{"web": time.Hour, "dns": time.Hour}
	for name, tc := range map[string]struct {
		takes    map[string]time.Duration
		change   func(p *shutdown.Policy)
		after    time.Duration // time of the second notice
		deadline time.Duration // relative to after; 0: none
		kills    []string
		took     time.Duration
	}{
		"sh-8 a terminating pod has less": {
			takes: hour, after: 8 * s, deadline: 11 * s, // of 22 s
			kills: []string{"0s kill web within 20", "8s kill web within 6", "14s kill dns within 5"}, took: 19 * s,
		},
		"the last group": {
			takes: hour, after: 22 * s, deadline: 2 * s,
			kills: []string{"0s kill web within 20", "20s kill dns within 5", "22s kill dns within 2"}, took: 24 * s,
		},
		"at once": {
			takes: hour, after: 8 * s, deadline: -s,
			kills: []string{"0s kill web within 20", "8s kill web within 0", "8s kill dns within 0"}, took: 8 * s,
		},
		"later":     {takes: hour, after: 8 * s, deadline: time.Hour, kills: []string{"0s kill web within 20", "20s kill dns within 5"}, took: 30 * s},
		"no matter": {after: 500 * time.Millisecond, deadline: 40 * s, kills: []string{"0s kill web within 20", "1s kill dns within 5"}, took: 2 * s},
		"none":      {takes: hour, after: 8 * s, kills: []string{"0s kill web within 20", "20s kill dns within 5"}, took: 30 * s},
		"carried-over time": {
			takes: map[string]time.Duration{"dns": time.Hour}, change: func(p *shutdown.Policy) { p.CarryOver = true }, after: 10 * s, deadline: 3 * s,
			kills: []string{"0s kill web within 20", "1s kill dns within 5", "10s kill dns within 3"}, took: 13 * s,
		},
		"before they end": {
			takes: hour, change: func(p *shutdown.Policy) { p.Propagation = 10 * s }, after: 5 * s, deadline: 9 * s, // of 45 s
			kills: []string{"6s kill web within 4", "12s kill dns within 2"}, took: 14 * s,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				other := new(shutdown.Manual)
				m := &machine{t: t, policy: twoGroups, all: webAndDNS(), takes: tc.takes, triggers: []shutdown.Trigger{other}}
				if tc.change != nil {
					tc.change(&m.policy)
				}
				m.run()
				m.begin()
				time.Sleep(tc.after)
				var deadline time.Time
				if tc.deadline != 0 {
					deadline = time.Now().Add(tc.deadline)
				}
				<-other.Stop(deadline)
				assert.Equal(t, tc.took, time.Since(m.begun))
				assert.Equal(t, tc.kills, m.lines("kill"))
			})
		})
	}
}

func TestFinalStatusesAreBoundedByTheDeadline(t *testing.T) { // sh-12
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups, all: webAndDNS(), sink: time.Hour}
		m.run()
		m.begin()
		time.Sleep(5 * s)
		<-m.manual.Stop(time.Now().Add(2 * s)) // the same trigger, once more
		assert.Equal(t, 7*s, time.Since(m.begun))
	})
}

func TestTheTimesOfAShutdownAreRecorded(t *testing.T) { // sh-11
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups, all: webAndDNS(), file: stateFile(t)}
		var times []string
		m.hooks.Times = func(start, end time.Time) {
			times = append(times, start.UTC().Format(time.TimeOnly)+" "+end.UTC().Format(time.TimeOnly))
		}
		m.run()
		assert.Empty(t, times, "there was none before")
		m.begin()
		running, err := os.ReadFile(m.file)
		require.NoError(t, err)
		assert.JSONEq(t, `{"startTime": "2000-01-01T00:00:00Z", "endTime": "0001-01-01T00:00:00Z"}`, string(running))
		<-m.manual.Stop(time.Time{})
		over, err := os.ReadFile(m.file)
		require.NoError(t, err)
		assert.JSONEq(t, `{"startTime": "2000-01-01T00:00:00Z", "endTime": "2000-01-01T00:00:02Z"}`, string(over))
		assert.Equal(t, []string{"00:00:00 00:00:00", "00:00:00 00:00:02"}, times)

		// The next agent reports it.
		next := &machine{t: t, policy: twoGroups, file: m.file, hooks: m.hooks}
		next.run()
		assert.Equal(t, "00:00:00 00:00:02", times[2])
		start, end := next.Times()
		assert.Equal(t, 2*s, end.Sub(start))

		require.NoError(t, os.WriteFile(m.file, []byte("{"), 0o600))
		broken := &machine{t: t, policy: twoGroups, file: m.file, hooks: m.hooks}
		broken.run()
		assert.Len(t, times, 3)
	})
}

// undying are pods that do not terminate.
type undying struct{ pods []*v1.Pod }

func (u undying) Running() []*v1.Pod { return u.pods }

func (undying) Kill(ctx context.Context, _ shutdown.Kill) error { <-ctx.Done(); return ctx.Err() }

func (undying) AwaitCleaned(context.Context, *v1.Pod) error { return nil }

func TestAStoppedAgentLeavesAShutdownUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t}
		manager, err := shutdown.New(shutdown.Config{
			Policy: twoGroups, Triggers: []shutdown.Trigger{&m.manual}, Pods: undying{webAndDNS()},
		})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- manager.Run(ctx) }()
		m.manual.Stop(time.Time{})
		time.Sleep(s)
		stop()
		require.NoError(t, <-done)
	})
}
