package podworker

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestEffectiveGraceIsTheSmallestRequested(t *testing.T) { // pw-23, pw-24
	pod := func(spec, deletion *int64) *v1.Pod {
		p := new(v1.Pod)
		p.Spec.TerminationGracePeriodSeconds = spec
		p.DeletionGracePeriodSeconds = deletion
		return p
	}
	for name, tc := range map[string]struct {
		stored    *int64
		pod       *v1.Pod
		override  *int64
		want      int64
		shortened bool
	}{
		"spec 30 (pw-27)":                                 {pod: pod(new(int64(30)), nil), want: 30},
		"spec 30, deletion 5":                             {pod: pod(new(int64(30)), new(int64(5))), want: 5},
		"and override 2":                                  {pod: pod(new(int64(30)), new(int64(5))), override: new(int64(2)), want: 2},
		"deletion 0 is raised to 1 (pw-25)":               {pod: pod(new(int64(30)), new(int64(0))), want: 1},
		"deletion 5, override 0":                          {pod: pod(new(int64(30)), new(int64(5))), override: new(int64(0)), want: 1},
		"deletion 0 stays below override 30 (lq-7)":       {pod: pod(new(int64(30)), new(int64(0))), override: new(int64(30)), want: 1},
		"an override beats the spec":                      {pod: pod(new(int64(30)), nil), override: new(int64(60)), want: 60},
		"a grace period does not grow (inv-4)":            {stored: new(int64(5)), pod: pod(new(int64(30)), nil), override: new(int64(10)), want: 5},
		"it shrinks, and is reported (pw-26)":             {stored: new(int64(20)), pod: pod(new(int64(30)), nil), override: new(int64(10)), want: 10, shortened: true},
		"the first value is not a shortening (pw-26)":     {pod: pod(new(int64(30)), nil), override: new(int64(10)), want: 10},
		"the same value is not a shortening":              {stored: new(int64(10)), pod: pod(new(int64(30)), nil), override: new(int64(10)), want: 10},
		"a pod without any":                               {pod: pod(nil, nil), want: 1},
		"an orphan's first value replaces the recorded":   {override: new(int64(5)), want: 5, shortened: true},
		"an orphan's stored value":                        {stored: new(int64(5)), want: 5},
		"an orphan's does not grow (inv-4)":               {stored: new(int64(5)), override: new(int64(9)), want: 5},
		"negative is raised too":                          {pod: pod(new(int64(-7)), nil), want: 1},
		"raised to the floor is no shortening afterwards": {stored: new(int64(1)), pod: pod(nil, new(int64(0))), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, shortened := effectiveGrace(tc.stored, tc.pod, tc.override)
			assert.Equal(t, tc.want, *got)
			assert.Equal(t, tc.shortened, shortened)
		})
	}
}

func TestAnOrphanWithoutAValueHasItsRecordedGrace(t *testing.T) { // lq-33
	got, shortened := effectiveGrace(nil, nil, nil)
	assert.Nil(t, got)
	assert.False(t, shortened)
}

func TestTheLifecycleOnlyMovesForward(t *testing.T) { // pw-2
	plain, deleted, failed := new(v1.Pod), new(v1.Pod), new(v1.Pod)
	deleted.DeletionTimestamp = new(metav1.Unix(100, 0))
	failed.Status.Phase = v1.PodFailed
	evict := KillOptions{Evict: true, Termination: runtime.Termination{Failed: true, Reason: "Evicted"}}

	for name, tc := range map[string]struct {
		from  lifecycle
		input input
		want  State
		eff   effect
	}{
		"a first update wakes": {
			lifecycle{state: Syncing}, podUpdated{pod: plain, create: true, first: true, stopped: false},
			Syncing, effect{wake: true}},
		"first sight of an ended pod whose containers are gone cleans up only (pw-11)": {
			lifecycle{state: Syncing}, podUpdated{pod: failed, create: true, first: true, stopped: true},
			Cleaning, effect{wake: true}},
		"first sight of an ended pod that still runs terminates it (pw-12)": {
			lifecycle{state: Syncing}, podUpdated{pod: failed, create: true, first: true, stopped: false},
			Stopping, effect{wake: true, cancel: true}},
		"a deletion stops (pw-16)": {
			lifecycle{state: Syncing, pod: plain}, podUpdated{pod: deleted, create: false, first: false, stopped: false},
			Stopping, effect{wake: true, cancel: true}},
		"a removal stops": {
			lifecycle{state: Syncing, pod: plain}, podRemoved{}, Stopping, effect{wake: true, cancel: true}},
		"an eviction stops": {
			lifecycle{state: Syncing, pod: plain}, killed{evict},
			Stopping, effect{wake: true, cancel: true}},
		"a pod that never started is finished at once (pw-31)": {
			lifecycle{state: Waiting, pod: plain}, podRemoved{}, Finished, effect{outcome: NeverStarted}},
		"killing a stopped pod completes at once (pw-17, lq-6)": {
			lifecycle{state: Cleaning, pod: plain}, killed{evict},
			Cleaning, effect{outcome: AlreadyStopped}},
		"killing a finished pod completes at once (lq-6)": {
			lifecycle{state: Finished, pod: plain}, killed{evict},
			Finished, effect{outcome: AlreadyStopped}},
		"a second kill without less grace changes nothing in flight": {
			lifecycle{state: Terminating, pod: plain, grace: new(int64(5))}, killed{KillOptions{GracePeriodSeconds: new(int64(9))}},
			Terminating, effect{wake: true}},
		"a shorter grace interrupts (pw-22)": {
			lifecycle{state: Terminating, pod: plain, grace: new(int64(5))}, killed{KillOptions{GracePeriodSeconds: new(int64(2))}},
			Terminating, effect{wake: true, cancel: true}},
		"an update of a terminating pod is taken in quietly": {
			lifecycle{state: Terminating, pod: plain}, podUpdated{pod: plain, create: false, first: false, stopped: false},
			Terminating, effect{}},
		"a late deletion of a finished pod cleans up once more": {
			lifecycle{state: Finished, pod: plain}, podUpdated{pod: deleted, create: false, first: false, stopped: false},
			Cleaning, effect{wake: true}},
		"but only once": {
			lifecycle{state: Finished, pod: plain, end: deletionPassed}, podUpdated{pod: deleted, create: false, first: false, stopped: false},
			Finished, effect{}},
		"a terminal Sync stops (pw-39)": {
			lifecycle{state: Syncing, pod: plain}, returned{call: callSync, terminal: true, err: nil},
			Stopping, effect{wake: true, cancel: true}},
		"an ordinary Sync stays": {
			lifecycle{state: Syncing, pod: plain}, returned{call: callSync, terminal: false, err: nil},
			Syncing, effect{}},
		"a Sync that ends after the kill changes nothing": {
			lifecycle{state: Stopping, pod: plain}, returned{call: callSync, terminal: true, err: nil},
			Stopping, effect{}},
		"stopped leads to cleaning (pw-40)": {
			lifecycle{state: Terminating, pod: plain}, returned{call: callTerminate, terminal: false, err: nil},
			Cleaning, effect{wake: true, outcome: Stopped}},
		"a stop that failed is repeated": {
			lifecycle{state: Terminating, pod: plain}, returned{call: callTerminate, terminal: false, err: assert.AnError},
			Terminating, effect{}},
		"an orphan has nothing to clean (pw-41)": {
			lifecycle{state: Terminating, orphan: new(runtime.Pod)}, returned{call: callTerminate, terminal: false, err: nil},
			Finished, effect{outcome: Stopped}},
		"clean is finished (pw-42)": {
			lifecycle{state: Cleaning, pod: plain}, returned{call: callCleanup, terminal: false, err: nil},
			Finished, effect{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, eff := step(tc.from, tc.input)
			assert.Equal(t, tc.want.String(), got.state.String())
			assert.Equal(t, tc.eff, eff)
		})
	}
}

func TestAPodAddedAgainWhileTerminatingStartsOverLater(t *testing.T) {
	plain := new(v1.Pod)
	l := lifecycle{state: Terminating, pod: plain, end: deletionPassed}
	l, e := step(l, podUpdated{pod: plain, create: true})
	assert.NotNil(t, l.restart, "pw-14")
	assert.Equal(t, Terminating, l.state)
	assert.Zero(t, e)

	newer := new(v1.Pod)
	l, _ = step(l, podUpdated{pod: newer})
	assert.Same(t, plain, l.pod, "an update for the next life does not change the one that is ending")

	l, _ = step(l, podRemoved{})
	assert.Nil(t, l.restart, "no longer desired")

	orphan := lifecycle{state: Terminating, orphan: new(runtime.Pod)}
	orphan, _ = step(orphan, podUpdated{pod: plain, create: true})
	assert.NotNil(t, orphan.restart, "a source adds a pod that was terminated as an orphan: it starts over")
}

func TestBeginCallsWhatTheStateAllows(t *testing.T) {
	for _, tc := range []struct {
		from     State
		mayStart bool
		call     call
		want     State
	}{
		{Waiting, false, callNone, Waiting}, // pw-30
		{Waiting, true, callSync, Syncing},
		{Syncing, false, callSync, Syncing},          // pw-28
		{Stopping, true, callTerminate, Terminating}, // pw-44
		{Terminating, true, callTerminate, Terminating},
		{Cleaning, true, callCleanup, Cleaning},
		{Finished, true, callNone, Finished},
	} {
		l, e := step(lifecycle{state: tc.from}, callDue{tc.mayStart})
		assert.Equal(t, effect{call: tc.call}, e, tc.from.String())
		assert.Equal(t, tc.want, l.state, tc.from.String())
	}
}

// A Cleanup in progress deletes no API object for a deletion that was requested after
// it started, and nothing else would delete it: the object would stay forever. Found
// by the simulation.
func TestADeletionDuringACleanupIsNotForgotten(t *testing.T) {
	deleted := new(v1.Pod)
	deleted.DeletionTimestamp = new(metav1.Unix(100, 0))
	l, e := step(lifecycle{state: Cleaning, pod: new(v1.Pod)}, callDue{mayStart: true})
	assert.Equal(t, callCleanup, e.call)
	l, _ = step(l, podUpdated{pod: deleted})
	l, e = step(l, returned{call: callCleanup})
	assert.Equal(t, Cleaning, l.state)
	assert.Equal(t, effect{wake: true}, e, "once more, with the object as it is now")
	l, e = step(l, callDue{mayStart: true})
	assert.Equal(t, callCleanup, e.call)
	l, _ = step(l, returned{call: callCleanup})
	assert.Equal(t, Finished, l.state)
}

func TestTheLogOfAnOrphanNamesItsContainers(t *testing.T) {
	assert.Equal(t, []string{"sandbox s2", "container web"}, runningParts(&runtime.Pod{
		Sandboxes: []runtime.Sandbox{{ID: "s2", State: runtime.SandboxReady}, {ID: "s1", State: runtime.SandboxNotReady}},
		Containers: []runtime.Container{
			{Name: "web", State: runtime.ContainerRunning}, {Name: "init", State: runtime.ContainerExited},
		},
	}))
}
