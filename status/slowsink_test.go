package status_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/status"
)

// A slowSink takes its time, may fail, and checks that the calls for one pod do not
// overlap. It records the statuses it accepted.
type slowSink struct {
	t       *testing.T
	latency time.Duration
	fail    func(call int) error // nil: never

	mu    sync.Mutex
	calls int
	busy  map[types.UID]bool
	most  int // calls at once
	log   map[types.UID][]string
	last  map[types.UID]v1.PodStatus
}

func (s *slowSink) UpdatePodStatus(ctx context.Context, pod *v1.Pod, st v1.PodStatus) error {
	return s.call(ctx, pod, func() {
		s.log[pod.UID] = append(s.log[pod.UID], status.Summary(&st))
		s.last[pod.UID] = st
	})
}

func (s *slowSink) DeletePod(ctx context.Context, pod *v1.Pod) error {
	return s.call(ctx, pod, func() { s.log[pod.UID] = append(s.log[pod.UID], "deleted") })
}

func (s *slowSink) call(ctx context.Context, pod *v1.Pod, take func()) error {
	s.mu.Lock()
	if s.busy == nil {
		s.busy, s.log, s.last = map[types.UID]bool{}, map[types.UID][]string{}, map[types.UID]v1.PodStatus{}
	}
	assert.False(s.t, s.busy[pod.UID], "calls for %s overlap", pod.Name)
	s.busy[pod.UID] = true
	s.most = max(s.most, len(s.busy))
	s.calls++
	var err error
	if s.fail != nil {
		err = s.fail(s.calls)
	}
	s.mu.Unlock()

	select {
	case <-time.After(s.latency):
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, pod.UID)
	if err == nil {
		take()
	}
	return err
}

// made returns the number of calls, and said the last status of the pod, after all
// calls have completed.
func (s *slowSink) made() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *slowSink) reported(uid types.UID) v1.PodStatus {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[uid]
}

func (s *slowSink) failing(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = func(int) error { return err }
}

func (s *slowSink) took(uid types.UID) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log[uid]
}

// started returns a manager that runs until the test ends.
func started(t *testing.T, cfg status.Config) *status.Manager {
	m, err := status.New(cfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, m.Run(ctx)) })
	t.Cleanup(func() { stop(); wg.Wait() })
	return m
}
