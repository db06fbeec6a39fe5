package jobs_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/provider/jobs"
)

// A queue is a service in memory. The image of a job is its program: long, stubborn, or the
// exit code.
type queue struct {
	wait time.Duration // from submission to start

	mu    sync.Mutex
	jobs  map[string]*job
	calls int
}

type job struct {
	jobs.Status
	image string
	timer *time.Timer
	ended chan struct{}
}

func (q *queue) Submit(ctx context.Context, j jobs.Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls++
	if err := ctx.Err(); err != nil || q.jobs[j.ID] != nil {
		return err
	}
	if q.jobs == nil {
		q.jobs = map[string]*job{}
	}
	one := &job{
		Status: jobs.Status{ID: j.ID, Labels: j.Labels, Submitted: time.Now()},
		image:  j.Container.Image, ended: make(chan struct{}),
	}
	q.jobs[j.ID] = one
	one.timer = time.AfterFunc(q.wait, func() { q.begin(one) })
	return nil
}

func (q *queue) begin(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !j.Ended.IsZero() {
		return
	}
	j.Started = time.Now()
	if code, err := strconv.Atoi(j.image); err == nil {
		j.timer = time.AfterFunc(5*time.Millisecond, func() { q.end(j, int32(code)) })
	}
}

func (q *queue) end(j *job, code int32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.Ended.IsZero() {
		j.Ended, j.ExitCode = time.Now(), code
		j.timer.Stop()
		close(j.ended)
	}
}

func (q *queue) List(ctx context.Context) (all []jobs.Status, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls++
	for _, j := range q.jobs {
		s := j.Status
		s.Labels = maps.Clone(s.Labels)
		all = append(all, s)
	}
	return all, ctx.Err()
}

func (q *queue) Cancel(ctx context.Context, id string, grace time.Duration) error {
	q.mu.Lock()
	q.calls++
	j := q.jobs[id]
	q.mu.Unlock()
	if err := ctx.Err(); err != nil || j == nil {
		return err
	}
	q.mu.Lock()
	queued := j.Started.IsZero()
	q.mu.Unlock()
	switch {
	case queued || grace == 0:
		q.end(j, 137)
	case j.image == "graceful":
		time.AfterFunc(time.Millisecond, func() { q.end(j, 0) })
	case j.image != "stubborn":
		time.AfterFunc(time.Millisecond, func() { q.end(j, 143) })
	}
	select {
	case <-j.ended:
	case <-time.After(grace):
		q.end(j, 137)
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (q *queue) Log(_ context.Context, id string, opts *v1.PodLogOptions) (io.ReadCloser, error) {
	if opts.Follow {
		return nil, errors.New("logs of jobs cannot be followed")
	}
	return io.NopCloser(strings.NewReader("log of " + id)), nil
}

// ids returns the IDs of all jobs, sorted.
func (q *queue) ids() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Sorted(maps.Keys(q.jobs))
}

func (q *queue) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.calls
}
