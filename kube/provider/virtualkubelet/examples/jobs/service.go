package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/provider/jobs"
)

// A queue stands for the client of a job service: jobs wait, run for a time, and exit.
type queue struct {
	wait    time.Duration
	program func(image string) (run time.Duration, code int32)

	mu   sync.Mutex
	jobs map[string]*job
}

type job struct {
	jobs.Status
	run  time.Duration
	code int32
}

// Submit implements jobs.Service.
func (q *queue) Submit(_ context.Context, j jobs.Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.jobs[j.ID] == nil {
		run, code := q.program(j.Container.Image)
		q.jobs[j.ID] = &job{jobs.Status{ID: j.ID, Labels: j.Labels, Submitted: time.Now()}, run, code}
	}
	return nil
}

// List implements jobs.Service.
func (q *queue) List(context.Context) (all []jobs.Status, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range q.jobs {
		if now := time.Now(); j.Ended.IsZero() && j.Started.IsZero() && now.After(j.Submitted.Add(q.wait)) {
			j.Started = now
		} else if j.Ended.IsZero() && !j.Started.IsZero() && now.After(j.Started.Add(j.run)) {
			j.Ended, j.ExitCode = now, j.code
		}
		all = append(all, j.Status)
	}
	return all, nil
}

// Cancel implements jobs.Service. These jobs stop at once.
func (q *queue) Cancel(_ context.Context, id string, _ time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j := q.jobs[id]; j != nil && j.Ended.IsZero() {
		j.Ended, j.ExitCode = time.Now(), 143
	}
	return nil
}

// Log implements jobs.Logger. A log cannot be followed.
func (q *queue) Log(_ context.Context, id string, opts *v1.PodLogOptions) (io.ReadCloser, error) {
	if opts.Follow || opts.TailLines != nil {
		return nil, errors.New("the log of a job can only be read as a whole")
	}
	return io.NopCloser(strings.NewReader("job " + id + "\n")), nil
}
