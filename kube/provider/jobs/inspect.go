package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// scheme is the prefix that makes the ID of a job a container ID.
const scheme = "job://"

func jobID(containerID string) string { return strings.TrimPrefix(containerID, scheme) }

// Pods implements runtime.Lister.
func (r *Runtime) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	all, err := r.cfg.Service.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("jobs: list: %w", err)
	}
	of := map[types.UID][]Status{}
	for _, s := range all {
		uid := types.UID(s.Labels[labelUID])
		of[uid] = append(of[uid], s)
	}
	pods := make([]*runtime.Pod, 0, len(of))
	for uid, jobs := range of {
		pods = append(pods, statusOf(uid, jobs).Pod())
	}
	slices.SortFunc(pods, func(a, b *runtime.Pod) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.UID, b.UID))
	})
	return pods, nil
}

// PodStatus implements runtime.Lister.
func (r *Runtime) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	status, _, err := r.inspect(ctx, uid)
	return status, err
}

// inspect returns the status of a pod, and its jobs, newest first.
func (r *Runtime) inspect(ctx context.Context, uid types.UID) (*runtime.PodStatus, []Status, error) {
	at := time.Now()
	all, err := r.cfg.Service.List(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("jobs: list: %w", err)
	}
	jobs := slices.DeleteFunc(all, func(s Status) bool { return s.Labels[labelUID] != string(uid) })
	status := statusOf(uid, jobs)
	status.ObservedAt = at
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.replaced {
		if !slices.ContainsFunc(all, func(s Status) bool { return scheme+s.ID == id }) {
			delete(r.replaced, id)
		}
	}
	for i := range status.Containers {
		_, status.Containers[i].Replaced = r.replaced[status.Containers[i].ID]
	}
	return status, jobs, nil
}

// statusOf converts the jobs of a pod, which it sorts, newest first. The jobs that were
// submitted with one attempt are a sandbox, which is ready until the last of them has ended.
func statusOf(uid types.UID, jobs []Status) *runtime.PodStatus {
	slices.SortFunc(jobs, func(a, b Status) int {
		return cmp.Or(b.Submitted.Compare(a.Submitted), cmp.Compare(number(b.Labels, labelRestarts), number(a.Labels, labelRestarts)), cmp.Compare(a.ID, b.ID))
	})
	s := &runtime.PodStatus{UID: uid}
	for _, job := range jobs {
		box := sandboxOf(s, &job)
		box.CreatedAt = job.Submitted
		if job.Ended.IsZero() {
			box.State = runtime.SandboxReady
		}
		c := runtime.ContainerStatus{
			ID: scheme + job.ID, SandboxID: box.ID, Name: job.Labels[labelContainer], Image: job.Labels[labelImage],
			RestartCount: int32(number(job.Labels, labelRestarts)), Hash: number(job.Labels, labelHash),
			CreatedAt: job.Submitted, StartedAt: job.Started, State: runtime.ContainerCreated,
		}
		switch {
		case !job.Ended.IsZero():
			c.State, c.FinishedAt, c.ExitCode, c.Message = runtime.ContainerExited, job.Ended, job.ExitCode, job.Message
			c.Reason = "Completed"
			if c.ExitCode != 0 {
				c.Reason = "Error"
			}
		case !job.Started.IsZero():
			c.State = runtime.ContainerRunning
		}
		s.Containers = append(s.Containers, c)
	}
	slices.SortFunc(s.Sandboxes, func(a, b runtime.SandboxStatus) int { return cmp.Compare(b.Attempt, a.Attempt) })
	return s
}

// sandboxOf returns the sandbox of a job in s, which it adds if s does not have it.
func sandboxOf(s *runtime.PodStatus, job *Status) *runtime.SandboxStatus {
	s.Name, s.Namespace, s.Source = job.Labels[labelName], job.Labels[labelNamespace], job.Labels[labelSource]
	attempt := uint32(number(job.Labels, labelAttempt))
	i := slices.IndexFunc(s.Sandboxes, func(b runtime.SandboxStatus) bool { return b.Attempt == attempt })
	if i < 0 {
		i = len(s.Sandboxes)
		s.Sandboxes = append(s.Sandboxes, runtime.SandboxStatus{
			ID: fmt.Sprintf("%s/%d", s.UID, attempt), Attempt: attempt, State: runtime.SandboxNotReady,
			HostNetwork: job.Labels[labelHostNetwork] == "true",
		})
	}
	return &s.Sandboxes[i]
}
