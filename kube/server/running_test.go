package server

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/runtime"
)

// A counted runtime has containers that run, and counts the inspections, each of which
// takes a while.
type counted struct {
	runtime.Lister // no other method is called

	mu    sync.Mutex // guards the fields below
	looks int
	runs  []string
	err   error
}

func (c *counted) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	c.mu.Lock()
	c.looks++
	pod := new(runtime.Pod)
	for _, id := range c.runs {
		pod.Containers = append(pod.Containers, runtime.Container{ID: id, State: runtime.ContainerRunning})
	}
	err := c.err
	c.mu.Unlock()
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return []*runtime.Pod{pod}, err
}

func (c *counted) set(err error, runs ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err, c.runs = err, runs
}

func (c *counted) seen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looks
}

func TestFollowersOfLogsShareInspections(t *testing.T) { // la-15
	synctest.Test(t, func(t *testing.T) {
		rt := new(counted)
		rt.set(nil, "a", "b")
		a, random := newRunningContainers(rt), seedrun.Rand(t)
		ctx, stop := context.WithCancel(t.Context())
		var followers, of sync.WaitGroup
		follow := func(id string, wg *sync.WaitGroup) {
			after := time.Duration(random.Int64N(int64(time.Second)))
			wg.Go(func() {
				for {
					select {
					case <-ctx.Done():
						return
					case <-time.After(after):
					}
					runs, err := a.isRunning(ctx, id)
					if ctx.Err() == nil && assert.NoError(t, err) && !runs {
						return
					}
					after = time.Second
				}
			})
		}
		for range 100 {
			follow("a", &followers)
			follow("b", &of)
		}
		time.Sleep(10*time.Second + time.Millisecond)
		assert.LessOrEqual(t, rt.seen(), 12, "and not 2,000")

		rt.set(nil, "a")
		of.Wait() // all followers of b return
		assert.LessOrEqual(t, rt.seen(), 12+100, "the end of b is not taken from an inspection before it")
		stop()
		followers.Wait()
	})
}

// A container that was just started is not in an older list.
func TestAContainerIsNotReportedTerminatedBeforeItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := new(counted)
		rt.set(nil, "old")
		a := newRunningContainers(rt)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = a.isRunning(t.Context(), "old") })
		time.Sleep(20 * time.Millisecond) // in the middle of the inspection
		rt.set(nil, "old", "new")
		runs, err := a.isRunning(t.Context(), "new")
		require.NoError(t, err)
		assert.True(t, runs)
		wg.Wait()
	})
}

func TestARuntimeThatDoesNotAnswerEndsNoLog(t *testing.T) { // la-15
	synctest.Test(t, func(t *testing.T) {
		rt := new(counted)
		a := newRunningContainers(rt)
		rt.set(runtime.ErrUnavailable)
		runs, err := a.isRunning(t.Context(), "a")
		require.NoError(t, err)
		assert.True(t, runs)
		rt.set(errors.New("broken"))
		_, err = a.isRunning(t.Context(), "a")
		require.EqualError(t, err, "broken")

		// A follower that leaves does not affect the others.
		gone, leave := context.WithCancel(t.Context())
		leave()
		_, err = a.isRunning(gone, "a")
		require.ErrorIs(t, err, context.Canceled)
		rt.set(nil, "a")
		runs, err = a.isRunning(t.Context(), "a")
		require.NoError(t, err)
		assert.True(t, runs)
	})
}
