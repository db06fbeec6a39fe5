package cri

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/runtime"
)

// postStart runs a container's postStart hook; a container whose hook fails is
// stopped (rt-103).
func (s *step) postStart(ctx context.Context, c *v1.Container, id string) error {
	if c.Lifecycle == nil || c.Lifecycle.PostStart == nil {
		return nil
	}
	err := s.r.runHook(ctx, c.Lifecycle.PostStart, c, id, s.ips)
	if err == nil || ctx.Err() != nil {
		return err
	}
	ref := runtime.ContainerRef(s.pod, c.Name)
	s.event(ref, v1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed")
	stopErr := s.r.stopOne(ctx, target{
		pod: s.pod, spec: c, id: s.r.id(id), name: c.Name, message: "FailedPostStartHook", ips: s.ips, event: s.event,
	})
	return &startError{reason: "PostStartHookError", message: err.Error(), err: errors.Join(err, stopErr)}
}

// preStop runs a container's preStop hook, until the deadline at most. Its
// failure does not keep the container from being stopped.
func (r *Runtime) preStop(ctx context.Context, t target, deadline time.Time) {
	if t.spec == nil || t.spec.Lifecycle == nil || t.spec.Lifecycle.PreStop == nil {
		return
	}
	bounded, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	err := r.runHook(bounded, t.spec.Lifecycle.PreStop, t.spec, bare(t.id), t.ips)
	if err != nil && bounded.Err() == nil {
		t.event(runtime.ContainerRef(t.pod, t.name), v1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
	}
	if err != nil && ctx.Err() == nil {
		r.log.Info("a preStop hook failed", "pod", t.pod.Namespace+"/"+t.pod.Name, "uid", t.pod.UID, "container", t.name, "err", err)
	}
}

// runHook runs the one handler that is set (rt-98 … rt-102).
func (r *Runtime) runHook(ctx context.Context, h *v1.LifecycleHandler, c *v1.Container, id string, ips []string) error {
	switch {
	case h.Exec != nil:
		stdout, stderr, err := r.cfg.Runtime.ExecSync(r.quiet(ctx), id, h.Exec.Command, 0)
		if err != nil {
			return fmt.Errorf("exec %q: %w, output: %q", strings.Join(h.Exec.Command, " "), err, string(append(stdout, stderr...)))
		}
		return nil
	case h.Sleep != nil:
		select {
		case <-time.After(time.Duration(h.Sleep.Seconds) * time.Second):
			return nil
		case <-ctx.Done():
			return fmt.Errorf("sleep %d s: %w", h.Sleep.Seconds, ctx.Err())
		}
	case h.HTTPGet != nil:
		return httpHook(ctx, h.HTTPGet, c, ips)
	default:
		return fmt.Errorf("invalid handler: %v", h)
	}
}

// httpHook sends the request of a hook. Whatever is answered is a success
// (rt-101); a server that has no TLS is asked again without (rt-100).
func httpHook(ctx context.Context, g *v1.HTTPGetAction, c *v1.Container, ips []string) error {
	host := g.Host
	if host == "" {
		if len(ips) == 0 {
			return errors.New("the pod has no IP to send the hook's request to")
		}
		host = ips[0]
	}
	port, err := hookPort(g.Port, c)
	if err != nil {
		return err
	}
	scheme := strings.ToLower(string(g.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	err = hookRequest(ctx, scheme, host, port, g, g.HTTPHeaders)
	if err != nil && scheme == "https" && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		open := slices.DeleteFunc(slices.Clone(g.HTTPHeaders), func(h v1.HTTPHeader) bool {
			return strings.EqualFold(h.Name, "Authorization") // meant for a server with TLS
		})
		return hookRequest(ctx, "http", host, port, g, open)
	}
	return err
}

func hookRequest(ctx context.Context, scheme, host string, port int, g *v1.HTTPGetAction, headers []v1.HTTPHeader) error {
	url := scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port)) + "/" + strings.TrimPrefix(g.Path, "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	for _, h := range headers {
		if strings.EqualFold(h.Name, "Host") {
			req.Host = h.Value
		} else {
			req.Header.Add(h.Name, h.Value)
		}
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as the kubelet: the pod has no name to verify
	}
	answer, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 10<<10))
	return answer.Body.Close()
}

// hookPort returns the port of a hook, which may be a name that the container
// gives to one of its own.
func hookPort(port intstr.IntOrString, c *v1.Container) (int, error) {
	if port.Type == intstr.Int {
		return port.IntValue(), nil
	}
	for _, p := range c.Ports {
		if p.Name == port.StrVal {
			return int(p.ContainerPort), nil
		}
	}
	if n, err := strconv.Atoi(port.StrVal); err == nil {
		return n, nil
	}
	return 0, fmt.Errorf("couldn't find port: %v in container %s", port.StrVal, c.Name)
}
