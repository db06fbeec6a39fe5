package podworker_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/script"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata/*.txt")

// TestScenarios plays testdata/*.txt (package script has the format). The
// effects of a command are recorded with the seconds since the start. Commands:
//
//	agent [sources=A,B] [parallel=N] [slow=SECONDS]
//	                            a new agent over what runs; the one before has stopped. A script that doesn't
//	                            begin with it has one with a source that has synced
//	stop                        the agent ends
//	synced SOURCE               a source has synced
//	create|update POD [GENERATION]
//	                            an update from a source; POD is uid[/name], static pods begin with "static-"
//	remove POD                  a source removes it
//	delete POD SECONDS          an update with a deletion timestamp and grace
//	ended POD                   a create whose API phase is Succeeded
//	mirror|unmirror POD         the API server has the copy of a static pod of that name, or has not
//	kill POD [SECONDS]          KillOptions; its completion shows as "killed"
//	killwait POD [SECONDS]      KillAndWait
//	orphan POD [SOURCE]         the runtime lists it, and no source does
//	runs POD [SOURCE]           its status in the runtime from now on
//	gone POD                    and that it shows nothing
//	block|unblock CALL [POD]    observe, sync, terminate or cleanup does not return, or does again (also when its context ends)
//	fail|panic CALL [POD]       it returns an error at once, or panics
//	mend CALL [POD]             it does not any more
//	terminal POD                Sync of it reports it as terminal
//	backoff SECONDS             Sync fails until then
//	changed POD                 pleg reports a change
//	explain POD                 the Snapshot
//	advance SECONDS             time passes
//	settle                      the Loop's synchronous step
func TestScenarios(t *testing.T) {
	script.Run(t, "testdata/*.txt", *update, func(t *testing.T, s *script.Script) (played *script.Script) {
		synctest.Test(t, func(t *testing.T) { played = play(t, s) })
		return played
	})
}

// A stage is a Handler and a StatusCache that follow the script and record their
// calls.
type stage struct {
	began time.Time

	mu       sync.Mutex
	trace    []traced
	added    map[types.UID]bool // pods that have a worker and a source
	running  map[types.UID]bool
	names    map[types.UID]string // of the pods reported as running
	sources  map[types.UID]string
	blocked  map[string]chan struct{}
	failing  map[string]bool
	panics   map[string]bool
	terminal map[types.UID]bool
	backoff  time.Time
}

// Traced lines are sorted by time, then by pod, the notification of a waiter last: the
// order of two pods, or of two goroutines, at one moment is undefined.
type traced struct {
	at   time.Duration
	uid  types.UID
	what string
}

func (s *stage) note(uid types.UID, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = append(s.trace, traced{time.Since(s.began), uid, what})
}

// takeTrace returns the lines since its last call.
func (s *stage) takeTrace() (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.trace, func(a, b traced) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.uid, b.uid), rank(a)-rank(b))
	})
	for _, t := range s.trace {
		lines = append(lines, fmt.Sprintf("%gs %s: %s", t.at.Seconds(), t.uid, t.what))
	}
	s.trace = nil
	return lines
}

func rank(t traced) int {
	if strings.HasPrefix(t.what, "killed") {
		return 1
	}
	return 0
}

func (s *stage) do(ctx context.Context, name string, w podworker.SyncRequest) error {
	grace := ""
	if w.GracePeriodSeconds != nil {
		grace = fmt.Sprintf(" grace=%d", *w.GracePeriodSeconds)
	}
	if w.Orphan != nil {
		grace += " orphan"
	}
	if w.Pod != nil && w.Pod.Generation > 0 {
		grace += fmt.Sprintf(" gen=%d", w.Pod.Generation)
	}
	if w.Mirror != nil {
		grace += " mirror=" + string(w.Mirror.UID)
	}
	s.note(w.UID, name+grace)
	return s.hinder(ctx, name, w.UID)
}

// hinder applies the script's block, failure or panic to a call, for all pods or one.
func (s *stage) hinder(ctx context.Context, name string, uid types.UID) error {
	one := name + " " + string(uid)
	s.mu.Lock()
	block, failing, panics := s.blocked[name], s.failing[name] || s.failing[one], s.panics[name] || s.panics[one]
	if block == nil {
		block = s.blocked[one]
	}
	s.mu.Unlock()
	if panics {
		panic("scripted failure")
	}
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			s.note(uid, name+" interrupted")
			return ctx.Err()
		}
	}
	if failing {
		return errors.New("scripted failure")
	}
	return nil
}

func (s *stage) Sync(ctx context.Context, w podworker.SyncRequest) (podworker.SyncResult, error) {
	err := s.do(ctx, "sync", w)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && time.Now().Before(s.backoff) {
		return podworker.SyncResult{RetryAt: s.backoff}, errors.New("back-off")
	}
	return podworker.SyncResult{Terminal: s.terminal[w.UID]}, err
}

func (s *stage) Terminate(ctx context.Context, w podworker.SyncRequest) error {
	err := s.do(ctx, "terminate", w)
	if err == nil {
		s.mu.Lock()
		delete(s.running, w.UID)
		s.mu.Unlock()
	}
	return err
}

func (s *stage) Cleanup(ctx context.Context, w podworker.SyncRequest) error {
	return s.do(ctx, "cleanup", w)
}

// Retain notes each removed pod as forgotten.
func (s *stage) Retain(_ context.Context, keep func(types.UID) bool) error {
	s.mu.Lock()
	gone := slices.DeleteFunc(slices.Sorted(maps.Keys(s.added)), keep)
	for _, uid := range gone {
		delete(s.added, uid)
	}
	s.mu.Unlock()
	for _, uid := range gone {
		s.note(uid, "forget")
	}
	return nil
}

func (s *stage) Get(uid types.UID) (*runtime.PodStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.added[uid] = true // the first call for a worker
	status := &runtime.PodStatus{UID: uid, ObservedAt: time.Now()}
	if s.running[uid] {
		status.Sandboxes = []runtime.SandboxStatus{{ID: "sb", State: runtime.SandboxReady}}
	}
	return status, nil
}

func (s *stage) GetNewerThan(ctx context.Context, uid types.UID, _ time.Time) (*runtime.PodStatus, error) {
	if err := s.hinder(ctx, "look", uid); err != nil {
		return nil, err
	}
	return s.Get(uid)
}

func (*stage) Healthy() error { return nil }

func (s *stage) Pods() []*runtime.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pods []*runtime.Pod
	for uid := range s.running {
		pods = append(pods, &runtime.Pod{UID: uid, Name: cmp.Or(s.names[uid], string(uid)), Namespace: "default", Source: s.sources[uid],
			Sandboxes: []runtime.Sandbox{{ID: "sb", State: runtime.SandboxReady}}})
	}
	return pods
}

func scriptPod(arg string) *v1.Pod {
	uid, name, ok := strings.Cut(arg, "/")
	if !ok {
		name = uid
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Name: name, Namespace: "default"}}
	switch {
	case strings.HasPrefix(uid, "static-"):
		pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	case strings.HasPrefix(uid, "mirror-"):
		pod.Annotations = map[string]string{"kubernetes.io/config.mirror": "hash"}
	}
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	return pod
}

// An agent is the Workers and the Loop over a stage.
type agent struct {
	workers *podworker.Workers
	loop    *podworker.Loop
	stop    func()
}

// start starts an agent over the pods of the stage.
func (s *stage) start(t *testing.T, options ...string) (*agent, error) {
	cfg := podworker.Config{Handler: s, StatusCache: s, Jitter: func(_ types.UID, d time.Duration) time.Duration { return d }}
	cfg.Record = func(e runtime.Event) { s.note(e.Object.UID, e.Reason) }
	sources := []string{"test"}
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		var err error
		switch name {
		case "sources":
			sources = strings.Split(value, ",")
		case "parallel":
			cfg.Parallel, err = strconv.Atoi(value)
		case "slow":
			var n int
			n, err = strconv.Atoi(value)
			cfg.Slow = time.Duration(n) * time.Second
		default:
			err = fmt.Errorf("an agent has no option %s", name)
		}
		if err != nil {
			return nil, err
		}
	}
	a := new(agent)
	var err error
	a.workers, err = podworker.New(cfg)
	require.NoError(t, err)
	a.loop, err = podworker.NewLoop(podworker.LoopConfig{Workers: a.workers, Sources: sources})
	require.NoError(t, err)
	a.loop.SourceSynced("test")
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- a.loop.Run(ctx) }()
	a.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ran)
	})
	synctest.Wait() // the next command applies to a running agent
	return a, nil
}

// play runs the commands of a script and returns it with the resulting trace.
func play(t *testing.T, scenario *script.Script) *script.Script {
	s := &stage{began: time.Now(), added: map[types.UID]bool{}, running: map[types.UID]bool{}, names: map[types.UID]string{}, sources: map[types.UID]string{},
		blocked: map[string]chan struct{}{}, failing: map[string]bool{}, panics: map[string]bool{}, terminal: map[types.UID]bool{}}
	a, err := s.start(t)
	require.NoError(t, err)
	defer func() { a.stop() }()

	played, err := scenario.Play(func(c *script.Command) ([]string, error) {
		var err error
		switch c.Name() {
		case "agent":
			a.stop()
			a, err = s.start(t, c.Words[1:]...)
		case "stop":
			a.stop()
		default:
			err = s.command(t.Context(), a.workers, a.loop, c)
		}
		if err != nil {
			return nil, err
		}
		synctest.Wait()
		return s.takeTrace(), nil
	})
	require.NoError(t, err)
	return played
}

func (s *stage) command(ctx context.Context, workers *podworker.Workers, loop *podworker.Loop, c *script.Command) (err error) {
	seconds := func(i int) *int64 {
		if c.Arg(i) == "" {
			return nil
		}
		n, bad := c.Int(i)
		err = errors.Join(err, bad)
		return &n
	}
	pod := scriptPod(c.Arg(1))
	locked := func(do func()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		do()
	}
	call := strings.TrimSpace(c.Arg(1) + " " + c.Arg(2))
	if c.Name() == "create" || c.Name() == "update" {
		if n := seconds(2); n != nil {
			pod.Generation = *n
		}
	}
	switch c.Name() {
	case "synced":
		loop.SourceSynced(c.Arg(1))
	case "mirror":
		loop.AddPods([]*v1.Pod{pod})
	case "unmirror":
		loop.RemovePods([]*v1.Pod{pod})
	case "explain":
		if e, ok := loop.Snapshot(pod.UID); ok {
			s.note(pod.UID, snapshotText(e))
		} else {
			s.note(pod.UID, "no worker")
		}
	case "killwait":
		opts := podworker.KillOptions{GracePeriodSeconds: seconds(2)}
		go func() {
			outcome, err := workers.KillAndWait(ctx, pod.UID, opts)
			s.note(pod.UID, fmt.Sprintf("killed: %v, %v", outcome, err))
		}()
	case "create":
		loop.AddPods([]*v1.Pod{pod})
	case "ended":
		pod.Status.Phase = v1.PodSucceeded
		loop.AddPods([]*v1.Pod{pod})
	case "update":
		loop.UpdatePods([]*v1.Pod{pod})
	case "delete":
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), seconds(2)
		loop.UpdatePods([]*v1.Pod{pod})
	case "remove":
		loop.RemovePods([]*v1.Pod{pod})
	case "kill":
		done := workers.Kill(pod.UID, podworker.KillOptions{GracePeriodSeconds: seconds(2), Evict: true})
		go func() {
			if outcome := <-done; outcome == podworker.Stopped {
				s.note(pod.UID, "killed")
			} else {
				s.note(pod.UID, "killed: "+outcome.String())
			}
		}()
	case "orphan":
		locked(func() { s.running[pod.UID], s.names[pod.UID], s.sources[pod.UID] = true, pod.Name, c.Arg(2) })
		loop.PodChanged(pod.UID)
	case "runs":
		locked(func() { s.running[pod.UID], s.names[pod.UID], s.sources[pod.UID] = true, pod.Name, c.Arg(2) })
	case "gone":
		locked(func() { delete(s.running, pod.UID) })
	case "block":
		locked(func() {
			if s.blocked[call] != nil {
				err = fmt.Errorf("%s is blocked already", call) // its waiters would never be released
				return
			}
			s.blocked[call] = make(chan struct{})
		})
	case "unblock":
		locked(func() {
			if s.blocked[call] == nil {
				err = fmt.Errorf("%s is not blocked", call)
				return
			}
			close(s.blocked[call])
			delete(s.blocked, call)
		})
	case "fail":
		locked(func() { s.failing[call] = true })
	case "panic":
		locked(func() { s.panics[call] = true })
	case "mend":
		locked(func() { delete(s.failing, call); delete(s.panics, call) })
	case "terminal":
		locked(func() { s.terminal[pod.UID] = true })
	case "backoff":
		wait, bad := c.Seconds(1)
		locked(func() { s.backoff = time.Now().Add(wait) })
		err = bad
	case "changed":
		loop.PodChanged(pod.UID)
	case "advance":
		wait, bad := c.Seconds(1)
		time.Sleep(wait)
		err = bad
	case "settle":
		loop.Settle()
	default:
		err = fmt.Errorf("there is no command %s", c.Name())
	}
	return err
}

// snapshotText returns the fields of a snapshot that are set, with times relative to it.
func snapshotText(s podworker.Snapshot) string {
	text := s.State.String() + " for " + s.At.Sub(s.Since).String()
	add := func(format string, args ...any) { text += ", " + fmt.Sprintf(format, args...) }
	if s.Step != "" {
		add("step %q for %v", s.Step, s.At.Sub(s.StepSince))
	}
	if s.BlockedBy != nil {
		add("blocked by %v", s.BlockedBy)
	}
	if s.Err != "" {
		add("failures %d: %s", s.Failures, s.Err)
	}
	if !s.Next.IsZero() {
		add("next in %v", s.Next.Sub(s.At))
	}
	if t := s.Termination; t != nil {
		add("termination: %s %v ago", t.Cause, s.At.Sub(t.At))
		if t.Reason != "" {
			add("%s: %s", t.Reason, t.Message)
		}
		if t.GracePeriodSeconds != nil {
			add("grace %d", *t.GracePeriodSeconds)
		}
	}
	if s.Restart {
		add("restart")
	}
	return text
}
