package cri

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podhttp"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// A hook is one execution of a lifecycle hook.
type hook struct {
	kind      string // PostStart or PreStop, as events and HookInfo have it
	pod       *v1.Pod
	container *v1.Container
	handler   *v1.LifecycleHandler
	id        string   // of the instance, without prefix
	ips       []string // of the pod
	event     eventFunc
}

// postStart runs a container's postStart hook. A container whose hook fails is stopped.
func (s *podSync) postStart(ctx context.Context, c *v1.Container, id string) error {
	if c.Lifecycle == nil || c.Lifecycle.PostStart == nil {
		return nil
	}
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if limit := s.r.cfg.Containers.PostStartTimeout; limit > 0 {
		bounded, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	err := s.r.runHook(bounded, hook{
		kind: "PostStart", pod: s.pod, container: c, handler: c.Lifecycle.PostStart, id: id, ips: s.ips, event: s.event,
	})
	// The hook remains pending in the checkpoint unless it succeeds: after a cancellation
	// or a failure to stop the container it is repeated.
	switch {
	case err == nil:
		s.r.checkpoints.update(s.pod, func(rec *podCheckpoint) { delete(rec.PendingPostStart, c.Name) })
		return nil
	case ctx.Err() != nil:
		return err
	case bounded.Err() != nil:
		err = fmt.Errorf("the hook timed out after %v: %v", s.r.cfg.Containers.PostStartTimeout, err)
	case errors.Is(err, runtime.ErrUnavailable):
		// The result of the hook is unknown because the runtime is unavailable: the
		// hook is repeated when the runtime is available again.
		return &startError{reason: "PostStartHookError", message: err.Error(), err: err}
	}
	s.event(runtime.ContainerRef(s.pod, c.Name), v1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed")
	stopErr := s.r.stopOne(ctx, target{
		pod: s.pod, spec: c, id: s.r.id(id), name: c.Name, message: "FailedPostStartHook", ips: s.ips, event: s.event,
	})
	return &startError{reason: "PostStartHookError", message: err.Error(), err: errors.Join(err, stopErr)}
}

// unfinishedHook runs the postStart hook of a started instance if it is still pending:
// after a lost response, a canceled sync or a restart of the agent.
func (s *podSync) unfinishedHook(ctx context.Context, c *v1.Container, id string) error {
	if s.r.checkpoints.get(s.pod.UID).PendingPostStart[c.Name] != id {
		return nil
	}
	s.trace.begin("PostStart", c.Name)
	return s.postStart(ctx, c, id)
}

// unfinishedHooks runs the pending hooks of all running containers except the stopped
// ones, in the order of the spec, before further containers are started.
func (s *podSync) unfinishedHooks(ctx context.Context, stopped []plan.Kill) {
	for c := range podspec.Containers(s.pod) {
		inst := running(s.status, c.Name)
		if ctx.Err() != nil {
			return
		}
		if inst == nil || slices.ContainsFunc(stopped, func(k plan.Kill) bool { return k.ID == inst.ID }) {
			continue
		}
		begun := time.Now()
		if err := s.unfinishedHook(ctx, c, runtimeID(inst.ID)); err != nil {
			s.done(runtime.Action{Kind: runtime.StartContainer, Target: c.Name, Err: joinContextErr(ctx, err), Reason: "PostStartHookError"}, begun)
		}
	}
}

// preStop runs a container's preStop hook and returns when it has returned, at the deadline at
// the latest. The container is stopped even if the hook fails. A command that exceeds the deadline
// continues while the container is stopped, as with the kubelet: the caller must call finish, which
// cancels it and waits for it.
func (r *Runtime) preStop(ctx context.Context, t target, deadline time.Time) (finish func()) {
	if t.spec == nil || t.spec.Lifecycle == nil || t.spec.Lifecycle.PreStop == nil {
		return func() {}
	}
	h := hook{
		kind: "PreStop", pod: t.pod, container: t.spec, handler: t.spec.Lifecycle.PreStop, id: runtimeID(t.id), ips: t.ips, event: t.event,
	}
	bounded, cancel := context.WithDeadline(ctx, deadline)
	var exceeded <-chan time.Time // of a command only
	if h.handler.Exec != nil {
		cancel()
		bounded, cancel = context.WithCancel(ctx)
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		exceeded = timer.C
	}
	done := make(chan error, 1)
	go func() {
		done <- r.runHook(bounded, h)
		close(done)
	}()
	var err error
	select {
	case err = <-done:
		if err != nil && bounded.Err() == nil {
			t.event(runtime.ContainerRef(t.pod, t.name), v1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
		}
	case <-exceeded:
		err = context.DeadlineExceeded
	}
	if err != nil && ctx.Err() == nil {
		r.log.Info("PreStop hook failed, stopping the container", "pod", t.pod.Namespace+"/"+t.pod.Name, "podUID", t.pod.UID, "containerName", t.name, "err", err)
	}
	return func() {
		cancel()
		for range done { // until it is closed
		}
	}
}

// runHook runs a hook until it returns or ctx is done.
func (r *Runtime) runHook(ctx context.Context, h hook) error {
	begun := time.Now()
	insecure, err := r.handle(ctx, h)
	if insecure {
		h.event(runtime.ContainerRef(h.pod, h.container.Name), v1.EventTypeWarning, "LifecycleHTTPFallback",
			fmt.Sprintf("request to HTTPS lifecycle hook of container %s got HTTP response, retry with HTTP succeeded", h.container.Name))
	}
	if r.cfg.Hooks.Hooked != nil {
		r.cfg.Hooks.Hooked(HookInfo{
			Pod: h.pod, Container: h.container.Name, Kind: h.kind, Duration: time.Since(begun), Err: err, Insecure: insecure,
		})
	}
	return err
}

// handle runs the handler that is set. insecure reports whether an HTTPS request
// succeeded only after it was repeated without TLS.
func (r *Runtime) handle(ctx context.Context, h hook) (insecure bool, err error) {
	switch {
	case h.handler.Exec != nil:
		stdout, stderr, err := r.cfg.Runtime.ExecSync(r.quiet(ctx), h.id, h.handler.Exec.Command, 0)
		if err != nil {
			return false, fmt.Errorf("exec %q: %w, output: %q", strings.Join(h.handler.Exec.Command, " "), err, excerpt(stdout, stderr))
		}
		return false, nil
	case h.handler.Sleep != nil:
		select {
		case <-time.After(time.Duration(min(h.handler.Sleep.Seconds, mostGrace)) * time.Second):
			return false, nil
		case <-ctx.Done():
			return false, fmt.Errorf("sleep %d s: %w", h.handler.Sleep.Seconds, ctx.Err())
		}
	case h.handler.HTTPGet != nil:
		return httpHook(ctx, h.handler.HTTPGet, h.container, h.ips)
	default:
		return false, fmt.Errorf("invalid handler: %v", h.handler)
	}
}

// maxOutput is the maximum size of the output of a hook in errors, in bytes.
const maxOutput = 2048

// excerpt returns the end of the output of a hook, stdout first.
func excerpt(stdout, stderr []byte) []byte {
	last := func(b []byte, n int) []byte { return b[max(len(b)-n, 0):] }
	errs := last(stderr, maxOutput)
	return append(bytes.Clone(last(stdout, maxOutput-len(errs))), errs...)
}

// userAgent is the default header User-Agent of hooks, Kubernetes' own.
const userAgent = "kube-lifecycle/" + runtime.KubernetesMajorMinor

// maxHookBody is how much of the response to a hook is read, in bytes, before the
// connection is closed.
const maxHookBody = 10 << 10

// httpHook sends the request of a hook. Every response is a success. If
// the server does not support TLS, the request is repeated without it, and without
// the credentials in it; insecure reports whether that succeeded.
func httpHook(ctx context.Context, g *v1.HTTPGetAction, c *v1.Container, ips []string) (insecure bool, err error) {
	ip := ""
	if len(ips) > 0 {
		ip = ips[0]
	}
	req, err := podhttp.NewRequest(ctx, g, c, ip, userAgent)
	if err != nil {
		return false, fmt.Errorf("httpGet: %w", err)
	}
	protocols, err := podhttp.Protocols(g)
	if err != nil {
		return false, fmt.Errorf("httpGet: %w", err)
	}
	client := podhttp.NewClient(podhttp.Config{MaxBody: maxHookBody, Protocols: protocols})
	defer client.Close()
	err = send(client, req)
	if err != nil && req.URL.Scheme == "https" && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		open := req.Clone(ctx)
		open.URL.Scheme = "http"
		open.Header.Del("Authorization")
		err = send(client, open)
		return err == nil, err
	}
	return false, err
}

// send sends a request and reads the response.
func send(client *podhttp.Client, req *http.Request) error {
	response, err := client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, response.Body)
	return response.Body.Close()
}
