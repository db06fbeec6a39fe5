package podworker_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
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

// TestScenarios plays testdata/*.txt (package script has the format). What a
// command led to is shown with the seconds since the start. Commands:
//
//	create|update|remove POD    what a source says; POD is uid[/name], static pods begin with "static-"
//	delete POD SECONDS          an update with a deletion timestamp and grace
//	ended POD                   a create whose API phase is Succeeded
//	kill POD [SECONDS]          KillOptions; its completion shows as "killed"
//	orphan POD                  the runtime holds it, nobody wants it
//	runs POD | gone POD         what the runtime shows of it from now on
//	block|unblock CALL          sync, terminate or cleanup does not return, or does again (also when its context ends)
//	fail CALL | mend CALL       it returns an error at once
//	terminal POD                Sync of it says that it has run to its end
//	backoff SECONDS             Sync fails until then
//	changed POD                 pleg says so
//	advance SECONDS             time passes
//	settle                      the Loop's synchronous step
func TestScenarios(t *testing.T) {
	script.Run(t, "testdata/*.txt", *update, func(t *testing.T, s *script.Script) (played *script.Script) {
		synctest.Test(t, func(t *testing.T) { played = play(t, s) })
		return played
	})
}

// A stage is a Handler and a Statuses that do as the script says and write down
// what is called.
type stage struct {
	began time.Time

	mu       sync.Mutex
	trace    []traced
	running  map[types.UID]bool
	names    map[types.UID]string // of what was said to run
	blocked  map[string]chan struct{}
	failing  map[string]bool
	terminal map[types.UID]bool
	backoff  time.Time
}

// A traced line sorts by time, then pod, and a waiter's word comes last: what
// happens to two pods, or on two goroutines, at one moment has no order.
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

// takeTrace returns the lines since it was called last.
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
	if t.what == "killed" {
		return 1
	}
	return 0
}

func (s *stage) do(ctx context.Context, name string, w podworker.Work) error {
	grace := ""
	if w.GracePeriodSeconds != nil {
		grace = fmt.Sprintf(" grace=%d", *w.GracePeriodSeconds)
	}
	if w.Orphan != nil {
		grace += " orphan"
	}
	s.note(w.UID, name+grace)
	s.mu.Lock()
	block, failing := s.blocked[name], s.failing[name]
	s.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			s.note(w.UID, name+" interrupted")
			return ctx.Err()
		}
	}
	if failing {
		return errors.New("as the script says")
	}
	return nil
}

func (s *stage) Sync(ctx context.Context, w podworker.Work) (podworker.Next, error) {
	err := s.do(ctx, "sync", w)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && time.Now().Before(s.backoff) {
		return podworker.Next{Retry: s.backoff}, errors.New("back-off")
	}
	return podworker.Next{Terminal: s.terminal[w.UID]}, err
}

func (s *stage) Terminate(ctx context.Context, w podworker.Work) error {
	err := s.do(ctx, "terminate", w)
	if err == nil {
		s.mu.Lock()
		delete(s.running, w.UID)
		s.mu.Unlock()
	}
	return err
}

func (s *stage) Cleanup(ctx context.Context, w podworker.Work) error { return s.do(ctx, "cleanup", w) }
func (s *stage) Forget(pod *v1.Pod)                                  { s.note(pod.UID, "forget") }

func (s *stage) Get(uid types.UID) (*runtime.PodStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := &runtime.PodStatus{UID: uid, ObservedAt: time.Now()}
	if s.running[uid] {
		status.Sandboxes = []runtime.SandboxStatus{{ID: "sb", State: runtime.SandboxReady}}
	}
	return status, nil
}

func (s *stage) GetNewerThan(_ context.Context, uid types.UID, _ time.Time) (*runtime.PodStatus, error) {
	return s.Get(uid)
}

func (s *stage) pods() []*runtime.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pods []*runtime.Pod
	for uid := range s.running {
		pods = append(pods, &runtime.Pod{UID: uid, Name: cmp.Or(s.names[uid], string(uid)), Namespace: "default",
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
	if strings.HasPrefix(uid, "static-") {
		pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	}
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	return pod
}

// play runs the commands of a story and returns it with the trace that they led
// to.
func play(t *testing.T, story *script.Script) *script.Script {
	s := &stage{began: time.Now(), running: map[types.UID]bool{}, names: map[types.UID]string{}, blocked: map[string]chan struct{}{},
		failing: map[string]bool{}, terminal: map[types.UID]bool{}}
	workers, err := podworker.New(podworker.Config{Handler: s, Statuses: s, Pods: s.pods, Jitter: func(d time.Duration) time.Duration { return d }})
	require.NoError(t, err)
	loop, err := podworker.NewLoop(podworker.LoopConfig{Workers: workers, Sources: []string{"test"}})
	require.NoError(t, err)
	loop.SourceSynced("test")
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- loop.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-ran)
	}()

	played, err := story.Play(func(c *script.Command) ([]string, error) {
		if err := s.command(workers, loop, c); err != nil {
			return nil, err
		}
		synctest.Wait()
		return s.takeTrace(), nil
	})
	require.NoError(t, err)
	return played
}

func (s *stage) command(workers *podworker.Workers, loop *podworker.Loop, c *script.Command) (err error) {
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
	switch c.Name() {
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
			<-done
			s.note(pod.UID, "killed")
		}()
	case "orphan":
		locked(func() { s.running[pod.UID], s.names[pod.UID] = true, pod.Name })
		loop.PodChanged(pod.UID)
	case "runs":
		locked(func() { s.running[pod.UID], s.names[pod.UID] = true, pod.Name })
	case "gone":
		locked(func() { delete(s.running, pod.UID) })
	case "block":
		locked(func() { s.blocked[c.Arg(1)] = make(chan struct{}) })
	case "unblock":
		locked(func() { close(s.blocked[c.Arg(1)]); delete(s.blocked, c.Arg(1)) })
	case "fail":
		locked(func() { s.failing[c.Arg(1)] = true })
	case "mend":
		locked(func() { delete(s.failing, c.Arg(1)) })
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
