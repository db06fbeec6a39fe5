package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/resolved"
)

// A Config configures a Runtime. Service is required.
type Config struct {
	// Service runs the jobs.
	Service Service

	// Resolver resolves the environment, the files of volumes and the pull credentials of jobs when they
	// are submitted. If nil, Job.Resolved is nil: variables that virtual-kubelet has not resolved
	// have no value, and containers with volumes are not started.
	Resolver *resolved.Resolver

	// Backoff delays restarts of containers. The zero value delays as the kubelet does.
	Backoff plan.BackoffConfig
}

// A Runtime runs pods as jobs. New constructs it. Safe for concurrent use, with the
// exceptions of runtime.Runtime.
type Runtime struct {
	cfg     Config
	backoff *plan.Backoff

	mu       sync.Mutex
	replaced map[string]struct{} // IDs of the jobs that were canceled in order to start their containers again
}

var _ runtime.Runtime = (*Runtime)(nil)

// New returns a Runtime, or an error if Service is nil or Backoff is invalid. It does not call
// the service.
func New(cfg Config) (*Runtime, error) {
	if cfg.Service == nil {
		return nil, errors.New("jobs: Config.Service is nil")
	}
	if err := compose.Check(cfg.Service, reflect.TypeFor[Logger]()); err != nil {
		return nil, fmt.Errorf("jobs: Config.Service: %w", err)
	}
	backoff, err := plan.NewBackoff(cfg.Backoff)
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	return &Runtime{cfg: cfg, backoff: backoff, replaced: map[string]struct{}{}}, nil
}

// SyncPod implements runtime.Runtime: it lists the jobs, computes a plan, cancels the jobs that
// the plan stops and submits those that it starts. A submitted container is in the state
// created until its job runs. req.Status is not used.
func (r *Runtime) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	var res runtime.SyncResult
	pod := req.Pod
	if pod == nil || pod.UID == "" {
		return res, errors.New("jobs: SyncRequest.Pod is nil or has no UID")
	}
	if len(pod.Spec.InitContainers) > 0 {
		act(&res, runtime.StartContainer, pod.Spec.InitContainers[0].Name, "CreateContainerConfigError", fmt.Errorf("jobs do not support init containers: %w", runtime.ErrUnsupported))
		return res, res.Err()
	}
	status, _, err := r.inspect(ctx, pod.UID)
	if err != nil {
		return res, err
	}
	p := plan.Compute(plan.Input{Pod: pod, Status: status, Probes: req.Probes, Backoff: r.backoff, Now: time.Now()})
	r.markReplaced(p.Replaced)
	err = r.stop(ctx, status, graceOf(runtime.KillRequest{Pod: pod}, nil), func(c *runtime.ContainerStatus) bool {
		return p.KillPod || stops(p, c)
	}, &res)
	if err != nil {
		return res, errors.Join(ctx.Err(), err)
	}
	attempt := p.Attempt
	if !p.CreateSandbox && len(status.Sandboxes) > 0 {
		attempt = status.Sandboxes[0].Attempt
	}
	if p.CreateSandbox && slices.ContainsFunc(p.Start, func(st plan.Start) bool { return !st.InBackoff() }) {
		act(&res, runtime.CreatePodSandbox, pod.Name+"_"+pod.Namespace, "", nil) // with its first job
	}
	for i := range p.Start {
		r.start(ctx, pod, attempt, &p.Start[i], &res)
	}
	return res, errors.Join(ctx.Err(), res.Err())
}

// stops reports whether p stops a job: the running instance, or a queued one of an older spec.
func stops(p plan.Plan, c *runtime.ContainerStatus) bool {
	return slices.ContainsFunc(p.Kill, func(k plan.Kill) bool { return k.ID == c.ID }) ||
		slices.ContainsFunc(p.Remove, func(gone plan.Removal) bool { return gone.ID == c.ID }) ||
		slices.ContainsFunc(p.Start, func(s plan.Start) bool { return s.Name == c.Name && s.Resume != c.ID })
}

// markReplaced records which jobs are canceled in order to start their containers again: their exit codes decide
// nothing.
func (r *Runtime) markReplaced(list []plan.Replaced) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, old := range list {
		r.replaced[old.ID] = struct{}{}
	}
}

// start submits the job of a start.
func (r *Runtime) start(ctx context.Context, pod *v1.Pod, attempt uint32, st *plan.Start, res *runtime.SyncResult) {
	switch {
	case st.Resume != "": // it is in the queue
	case st.InBackoff():
		if res.RetryAt.IsZero() || st.NotBefore.Before(res.RetryAt) {
			res.RetryAt = st.NotBefore
		}
		act(res, runtime.StartContainer, st.Name, "CrashLoopBackOff", errors.New(st.BackoffMessage(pod)))
	default:
		job := jobOf(pod, attempt, st, pod.Annotations[runtime.ConfigSourceAnnotation])
		if err := r.resolve(ctx, pod, &job); err != nil {
			act(res, runtime.StartContainer, st.Name, "CreateContainerConfigError", err)
			return
		}
		err := r.cfg.Service.Submit(ctx, job)
		if err == nil || ctx.Err() != nil { // it may have been queued
			r.backoff.Started(pod, *st, time.Now())
		}
		act(res, runtime.StartContainer, st.Name, "CreateContainerError", err)
	}
}

// tokenPath is where Kubernetes mounts the token of the service account into every container.
const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// resolve sets what the container of the job refers to. The error names what a job cannot do of it.
func (r *Runtime) resolve(ctx context.Context, pod *v1.Pod, job *Job) error {
	c := job.Container
	if len(c.VolumeDevices) > 0 {
		return errors.New("jobs do not support block devices")
	}
	if c.Lifecycle != nil && (c.Lifecycle.PostStart != nil || c.Lifecycle.PreStop != nil) {
		return errors.New("jobs do not support lifecycle hooks")
	}
	if r.cfg.Resolver == nil {
		if slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.MountPath != tokenPath }) {
			return errors.New("jobs do not support volumes")
		}
		return nil
	}
	p, err := r.cfg.Resolver.Resolve(ctx, pod)
	if err != nil {
		return err
	}
	job.Resolved = p.Container(c.Name)
	if job.Resolved.Err != nil {
		return job.Resolved.Err
	}
	for _, m := range job.Resolved.Mounts {
		v := p.Volume(m.Volume)
		if v == nil {
			return fmt.Errorf("jobs do not support volume %q: it does not consist of files", m.Volume)
		}
		job.Volumes = append(job.Volumes, *v)
	}
	return nil
}

// act adds an action to res. reason is the reason of a failure.
func act(res *runtime.SyncResult, kind runtime.ActionKind, target, reason string, err error) {
	a := runtime.Action{Kind: kind, Target: target}
	if err != nil {
		a.Err, a.Reason, a.Message = err, reason, err.Error()
	}
	res.Actions = append(res.Actions, a)
}

// KillPod implements runtime.Runtime: it cancels all jobs of the pod.
func (r *Runtime) KillPod(ctx context.Context, req runtime.KillRequest) error {
	if req.UID == "" {
		return errors.New("jobs: KillRequest.UID is empty")
	}
	status, jobs, err := r.inspect(ctx, req.UID)
	if err != nil {
		return err
	}
	err = r.stop(ctx, status, graceOf(req, jobs), func(*runtime.ContainerStatus) bool { return true }, new(runtime.SyncResult))
	if err == nil && (req.Pod == nil || req.Pod.DeletionTimestamp != nil) {
		r.backoff.Forget(req.UID)
	}
	return err
}

// stop cancels the jobs for which selected returns true, concurrently.
func (r *Runtime) stop(ctx context.Context, s *runtime.PodStatus, grace time.Duration, selected func(*runtime.ContainerStatus) bool, res *runtime.SyncResult) error {
	var group errgroup.Group
	for i := range s.Containers {
		c := &s.Containers[i]
		if c.State == runtime.ContainerExited || !selected(c) {
			continue
		}
		act(res, runtime.KillContainer, c.Name, "", nil)
		group.Go(func() error {
			if err := r.cfg.Service.Cancel(ctx, jobID(c.ID), grace); err != nil {
				return fmt.Errorf("jobs: cancel job %s: %w", jobID(c.ID), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// graceOf returns the grace period of a kill: that of the request, of the deletion, of the
// spec, or the one in the labels of the jobs.
func graceOf(req runtime.KillRequest, jobs []Status) time.Duration {
	seconds := int64(2)
	switch {
	case req.GracePeriodSeconds != nil:
		seconds = *req.GracePeriodSeconds
	case req.Pod != nil && req.Pod.DeletionGracePeriodSeconds != nil:
		seconds = *req.Pod.DeletionGracePeriodSeconds
	case req.Pod != nil && req.Pod.Spec.TerminationGracePeriodSeconds != nil:
		seconds = *req.Pod.Spec.TerminationGracePeriodSeconds
	case len(jobs) > 0 && jobs[0].Labels[labelGrace] != "":
		seconds = int64(number(jobs[0].Labels, labelGrace))
	}
	const most = 1 << 33 // seconds; 272 years, about the longest Duration
	return time.Duration(min(max(seconds, 0), most)) * time.Second
}

// ContainerLog implements provider.LogStreamer if the service is a Logger, and otherwise
// returns an error that is runtime.ErrUnsupported.
func (r *Runtime) ContainerLog(ctx context.Context, containerID string, opts *v1.PodLogOptions) (io.ReadCloser, error) {
	logger, ok := compose.As[Logger](r.cfg.Service)
	if !ok {
		return nil, fmt.Errorf("jobs: log: %w", runtime.ErrUnsupported)
	}
	return logger.Log(ctx, jobID(containerID), opts)
}
