package cri

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/logs"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// A Runtime runs pods on a CRI runtime. It implements [runtime.Runtime] and all
// optional interfaces of package runtime. Operations that the CRI runtime does not
// support return an error for which errors.Is(err, runtime.ErrUnsupported) is true.
type Runtime struct {
	cfg           Config
	backoff       *plan.Backoff
	images        *images.Manager
	sysctls       *podconfig.Sysctls
	checkpoints   *checkpoints
	terminations  *terminations
	imageMounts   *imageMounts
	unsupported   *unsupportedResizes
	announcements *announcements
	stuck         stuckSandboxes
	foreign       foreignPods
	turns         turns        // of the calls that start pods
	local         LocalStreams // nil if Config.Runtime does not implement it
	log           *slog.Logger
}

var (
	_ runtime.Runtime          = (*Runtime)(nil)
	_ runtime.Checker          = (*Runtime)(nil)
	_ runtime.Watcher          = (*Runtime)(nil)
	_ runtime.Execer           = (*Runtime)(nil)
	_ runtime.GarbageCollector = (*Runtime)(nil)

	_ runtime.StreamExecer  = (*Runtime)(nil)
	_ runtime.Attacher      = (*Runtime)(nil)
	_ runtime.PortForwarder = (*Runtime)(nil)
	_ runtime.StreamServer  = (*Runtime)(nil)
	_ runtime.LogReader     = (*Runtime)(nil)
	_ runtime.LogRotator    = (*Runtime)(nil)

	_ runtime.StatsProvider        = (*Runtime)(nil)
	_ runtime.ImageFSReporter      = (*Runtime)(nil)
	_ runtime.ImageStore           = (*Runtime)(nil)
	_ runtime.FeatureReporter      = (*Runtime)(nil)
	_ runtime.CgroupDriverReporter = (*Runtime)(nil)
	_ runtime.Checkpointer         = (*Runtime)(nil)
	_ runtime.PodCheckpointer      = (*Runtime)(nil)
	_ runtime.ResourceUpdater      = (*Runtime)(nil)
)

// New returns a Runtime for cfg, or an error that names the invalid field. It
// performs no calls and accesses no files.
func New(cfg Config) (*Runtime, error) {
	switch {
	case cfg.Runtime == nil:
		return nil, errors.New("cri: Config.Runtime is nil")
	case cfg.Images == nil:
		return nil, errors.New("cri: Config.Images is nil")
	case cfg.Name == "" || strings.Contains(cfg.Name, "/"):
		return nil, fmt.Errorf("cri: Config.Name %q is not the name of a runtime", cfg.Name)
	case cfg.Containers.PostStartTimeout < 0:
		return nil, fmt.Errorf("cri: Config.Containers.PostStartTimeout is negative: %v", cfg.Containers.PostStartTimeout)
	case cfg.Calls.Timeout < 0:
		return nil, fmt.Errorf("cri: Config.Calls.Timeout is negative: %v", cfg.Calls.Timeout)
	}
	if cfg.Calls.Timeout == 0 {
		cfg.Calls.Timeout = 2 * time.Minute
	}
	if err := cfg.Node.DNS.Validate(); err != nil {
		return nil, fmt.Errorf("cri: Config.Node.DNS: %w", err)
	}
	if err := cfg.Dirs.complete(); err != nil {
		return nil, fmt.Errorf("cri: Config.Dirs: %w", err)
	}
	if cfg.Node.IPs == nil {
		cfg.Node.IPs = func() []string { return nil }
	}
	if cfg.Record == nil {
		cfg.Record = func(runtime.Event) {}
	}
	cfg.Record = limitMessages(cfg.Record)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	backoff, err := plan.NewBackoff(cfg.Containers.Backoff)
	if err != nil {
		return nil, fmt.Errorf("cri: Config.Containers.Backoff: %w", err)
	}
	sysctls, err := podconfig.NewSysctls(cfg.Node.Facts.Kernel, cfg.Node.UnsafeSysctls)
	if err != nil {
		return nil, fmt.Errorf("cri: Config.Node.UnsafeSysctls: %w", err)
	}
	if err := compose.Check(cfg.Images, reflect.TypeFor[images.WithoutImages]()); err != nil {
		return nil, fmt.Errorf("cri: Config.Images: %w", err)
	}
	local, _ := compose.As[LocalStreams](cfg.Runtime)
	decorator := calls{timeout: cfg.Calls.Timeout, hook: cfg.Hooks.Called}
	announced := newAnnouncements()
	cfg.Runtime = &runtimeCalls{decorator, cfg.Runtime, announced}
	cfg.Images = &imageCalls{decorator, cfg.Images}
	r := &Runtime{
		cfg: cfg, backoff: backoff, sysctls: sysctls, log: cfg.Logger,
		checkpoints: newCheckpoints(filepath.Join(cfg.Dirs.Root, "pods"), cfg.Logger), terminations: newTerminations(), imageMounts: newImageMounts(), unsupported: newUnsupportedResizes(), local: local,
		announcements: announced,
		turns:         turns{fixed: cfg.Calls.Starts},
	}
	cfg.Pulls.Service, cfg.Pulls.Config.Logger = cfg.Images, cfg.Logger
	if cfg.Pulls.Dir == "" {
		cfg.Pulls.Dir = filepath.Join(cfg.Dirs.Root, "image_manager")
	}
	if cfg.Pulls.Credentials == nil {
		cfg.Pulls.Credentials = pullCredentials{r}
	}
	if r.images, err = images.New(cfg.Pulls.Config); err != nil {
		return nil, fmt.Errorf("cri: Config.Pulls: %w", err)
	}
	return r, nil
}

// quiet redirects the logs of the CRI client from stderr to the logger.
func (r *Runtime) quiet(ctx context.Context) context.Context { return logs.Context(ctx, r.log) }

// id returns the container ID with the prefix "<name>://".
func (r *Runtime) id(runtimeID string) string { return r.cfg.Name + "://" + runtimeID }

// runtimeID returns a container ID without the prefix of id.
func runtimeID(id string) string {
	if _, after, ok := strings.Cut(id, "://"); ok {
		return after
	}
	return id
}

// Check implements [runtime.Checker].
func (r *Runtime) Check(ctx context.Context) (runtime.Health, error) {
	var h runtime.Health
	answer, err := r.cfg.Runtime.Status(r.quiet(ctx), false)
	if err != nil {
		return h, fmt.Errorf("cri: runtime status: %w", err)
	}
	h.Runtime = errors.New("runtime did not report the condition RuntimeReady")
	h.Network = errors.New("runtime did not report the condition NetworkReady")
	for _, c := range answer.GetStatus().GetConditions() {
		var state error
		if !c.GetStatus() {
			state = fmt.Errorf("%s: %s", logs.Text(c.GetReason(), maxEventBytes), logs.Text(c.GetMessage(), maxErrorBytes))
		}
		switch c.GetType() {
		case "RuntimeReady":
			h.Runtime = state
		case "NetworkReady":
			h.Network = state
		}
	}
	return h, nil
}
