package cri

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/kubeparts/kubeparts/internal/quiet"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// Config configures a [Runtime].
type Config struct {
	// Runtime and Images are the two services of a CRI runtime: those of a
	// remote.Client, a process.Runtime, or a fake. Required.
	Runtime internalapi.RuntimeService
	Images  internalapi.ImageManagerService

	// Name of the runtime, which begins container IDs: "<name>://<id>"
	// (rt-145). It is remote.Client.Name, or process.Name. Required: IDs must
	// be the same after a restart of the agent.
	Name string

	// Node is the machine that this is.
	Node Node

	// RootDir holds a directory per pod, in the kubelet's layout, for
	// /etc/hosts and termination messages. Empty: /var/lib/kubelet.
	RootDir string

	// PodLogsDir holds the logs of containers. Empty: /var/log/pods.
	PodLogsDir string

	// ContainerLogsDir gets the legacy links to logs that log collectors read,
	// usually /var/log/containers (rt-86). Empty: no links.
	ContainerLogsDir string

	// CgroupParent returns the cgroup that holds the pod. Nil or "": the
	// runtime chooses.
	CgroupParent func(pod *v1.Pod) string

	// DNS is what the containers' resolv.conf is made from.
	DNS DNS

	// Backoff of containers that crash; zero values are the kubelet's.
	Backoff plan.BackoffConfig

	// Record takes the events that kubectl describe shows. It must not block.
	// Nil: nobody reads them.
	Record func(runtime.Event)

	// CallTimeout is how long a call of the CRI may take that has no time of its
	// own: making a sandbox has twice that, StopContainer and ExecSync have it
	// on top of the grace and the timeout, pulls and streams are not limited.
	// Zero: 2 minutes, the kubelet's runtimeRequestTimeout. A short one gives
	// up on what then succeeds unseen; the next look finds it.
	CallTimeout time.Duration

	// Streams connects to the runtime's streaming server: a streaming.Client.
	// Nil: streams are had only from a Runtime that is in this program (see
	// LocalStreams); the URLs are given out in either case.
	Streams Streamer

	// Logger, nil discards.
	Logger *slog.Logger

	// Hooks observe; see there.
	Hooks Hooks
}

// A Node tells of the machine what containers may ask for.
type Node struct {
	// IPs of the machine, the primary one first, for status.hostIP and the
	// pods of the host network. Nil: none is known.
	IPs func() []string

	// MemoryBytes of the machine, which the oom_score_adj of burstable pods
	// is measured against. Zero: such containers get 999.
	MemoryBytes int64

	// Allocatable is what containers without limits of their own read as
	// their limits in a resourceFieldRef. Nil: they read 0.
	Allocatable v1.ResourceList
}

// Hooks are called as things happen, on the goroutine they happen on; they must
// not block. Any may be nil.
type Hooks struct {
	// Acted is called after each action of a SyncPod.
	Acted func(ActInfo)

	// Called is called after each call of the CRI, from many goroutines.
	Called func(CallInfo)
}

// An ActInfo tells of one action of a SyncPod.
type ActInfo struct {
	Pod      *v1.Pod
	Action   runtime.Action
	Duration time.Duration
}

// A Runtime runs pods on a CRI runtime. It keeps the contract of
// [runtime.Runtime], and has all of the optional powers that package runtime
// knows; what the CRI runtime behind it has not got is ErrUnsupported.
type Runtime struct {
	cfg     Config
	backoff *plan.Backoff
	images  *puller
	local   LocalStreams // nil: the runtime is behind a socket
	log     *slog.Logger
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
	_ runtime.FeatureReporter      = (*Runtime)(nil)
	_ runtime.CgroupDriverReporter = (*Runtime)(nil)
	_ runtime.Checkpointer         = (*Runtime)(nil)
	_ runtime.ResourceUpdater      = (*Runtime)(nil)
)

// New returns a Runtime for cfg, or an error if it lacks something. It calls
// nothing.
func New(cfg Config) (*Runtime, error) {
	switch {
	case cfg.Runtime == nil:
		return nil, errors.New("cri: Config.Runtime is nil")
	case cfg.Images == nil:
		return nil, errors.New("cri: Config.Images is nil")
	case cfg.Name == "" || strings.Contains(cfg.Name, "/"):
		return nil, fmt.Errorf("cri: Config.Name %q is not the name of a runtime", cfg.Name)
	case cfg.CallTimeout < 0:
		return nil, fmt.Errorf("cri: Config.CallTimeout is negative: %v", cfg.CallTimeout)
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = 2 * time.Minute
	}
	if cfg.RootDir == "" {
		cfg.RootDir = "/var/lib/kubelet"
	}
	if cfg.PodLogsDir == "" {
		cfg.PodLogsDir = "/var/log/pods"
	}
	if cfg.CgroupParent == nil {
		cfg.CgroupParent = func(*v1.Pod) string { return "" }
	}
	if cfg.Node.IPs == nil {
		cfg.Node.IPs = func() []string { return nil }
	}
	if cfg.Record == nil {
		cfg.Record = func(runtime.Event) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	backoff, err := plan.NewBackoff(cfg.Backoff)
	if err != nil {
		return nil, fmt.Errorf("cri: Config.Backoff: %w", err)
	}
	local, _ := cfg.Runtime.(LocalStreams)
	how := calls{timeout: cfg.CallTimeout, hook: cfg.Hooks.Called}
	cfg.Runtime = &runtimeCalls{how, cfg.Runtime}
	cfg.Images = &imageCalls{how, cfg.Images}
	return &Runtime{cfg: cfg, backoff: backoff, images: newPuller(cfg.Images), local: local, log: cfg.Logger}, nil
}

// quiet keeps the CRI client behind our services from writing to stderr.
func (r *Runtime) quiet(ctx context.Context) context.Context { return quiet.Context(ctx, r.log) }

// id returns the container ID that is seen above the runtime.
func (r *Runtime) id(bare string) string { return r.cfg.Name + "://" + bare }

// bare returns the runtime's own ID of a container.
func bare(id string) string {
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
	h.Runtime = errors.New("the runtime says nothing of RuntimeReady")
	h.Network = errors.New("the runtime says nothing of NetworkReady")
	for _, c := range answer.GetStatus().GetConditions() {
		var state error
		if !c.GetStatus() {
			state = fmt.Errorf("%s: %s", c.GetReason(), c.GetMessage())
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
