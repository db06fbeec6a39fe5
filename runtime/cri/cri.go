package cri

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/internal/quiet"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/cri/userns"
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

	// Objects get what environments refer to. Nil: a container whose
	// environment comes from a ConfigMap or Secret is not made (pe-6), and there
	// are no variables of services.
	Objects Objects

	// Managers take part in the making of containers. Nil: nobody does.
	Managers Managers

	// DNS is what the containers' resolv.conf is made from. A configuration that
	// no such file can hold is an error of New.
	DNS DNS

	// UnsafeSysctls are the sysctls that pods may set besides the safe ones: names,
	// or prefixes that end with "*". Each must be namespaced (se-15). Runtime.Admit
	// rejects pods with others.
	UnsafeSysctls []string

	// RuntimeClass returns the runtime handler of a class (rt-20). Nil: a pod
	// that names a class is not run.
	RuntimeClass func(name string) (handler string, err error)

	// UserNamespaces gives pods with hostUsers: false their IDs; package userns
	// has an Allocator. Nil: such a pod is not run.
	UserNamespaces UserNamespaces

	// VolumeGroups returns the groups of the pod's persistent volumes, which all
	// of its containers get (vol-68). Nil: there are none.
	VolumeGroups func(pod *v1.Pod) []int64

	// SubPath returns the path on this machine of a part of a volume, safe from
	// who can write to the volume (vol-70): volume.SubPaths is one. Nil: the
	// path is looked up once, and handed to the runtime as it was then.
	SubPath func(ctx context.Context, sub SubPath) (path string, err error)

	// Backoff of containers that crash; zero values are the kubelet's.
	Backoff plan.BackoffConfig

	// IgnoreRestartAll takes container restart rules with the action
	// RestartAllContainers for absent (rt-138).
	IgnoreRestartAll bool

	// ResizeCgroup makes one value of the pod's cgroup what a resize needs. Nil:
	// pods have no cgroup with limits.
	ResizeCgroup func(ctx context.Context, pod *v1.Pod, s allocation.Step) error

	// Compat brings back quirks of the kubelet; see there.
	Compat Compat

	// Pulls says how images are pulled, and who may use those that are there.
	// Service and Logger come from the fields above; an empty Dir is
	// <RootDir>/image_manager, nil Credentials are those of Keyring and of the
	// pods' secrets.
	Pulls images.Config

	// ImagesByHandler pulls and looks for images by the runtime handler of the
	// pod's class, for runtimes that keep them apart (the kubelet's feature
	// RuntimeClassInImageCriApi, which is off by default).
	ImagesByHandler bool

	// PullAhead pulls the images of all containers of a new pod at once, while
	// its sandbox is made, instead of each before its container (lq-15). The
	// sync that makes the sandbox then ends when the last image is there. How
	// many pulls run at the same time is for Pulls to say.
	PullAhead bool

	// Keyring has the node's own credentials for images: files and plugins.
	// What a pod's imagePullSecrets have, which Objects get, is tried before.
	// Nil: the node has none.
	Keyring credentials.Keyring

	// Record takes the events that kubectl describe shows; none has a message
	// of more than 1024 bytes. It must not block.
	// Nil: nobody reads them.
	Record func(runtime.Event)

	// PostStartTimeout is how long a postStart hook may take; one that takes
	// longer has failed, and its container is stopped. Zero: as long as it
	// likes, like the kubelet's; what comes after it in the pod waits, but a
	// deletion does not (L-16).
	PostStartTimeout time.Duration

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

// UserNamespaces gives a pod the IDs that its user namespace is mapped to, the
// same ones each time until the pod is gone (se-17, se-19). It is called for each
// sandbox and each container of the pod, from the goroutine of its SyncPod.
type UserNamespaces interface {
	Allocate(pod types.UID) (userns.Mappings, error)
}

// A Node tells of the machine what containers may ask for.
type Node struct {
	// IPs of the machine, the primary one first, for status.hostIP and the
	// pods of the host network. Nil: none is known.
	IPs func() []string

	// MemoryBytes of the machine, which the oom_score_adj of burstable pods
	// is measured against. Zero: that of Facts, and if that is zero too, such
	// containers get 999.
	MemoryBytes int64

	// Allocatable is what containers without limits of their own read as
	// their limits in a resourceFieldRef. Nil: they read 0.
	Allocatable v1.ResourceList

	// Facts are what else containers depend on; [ReadFacts] reads those of a
	// Linux machine. What it lacks is taken from elsewhere: MemoryBytes and
	// AllocatableMemory from above, SeccompRoot from RootDir.
	Facts podconfig.Node
}

// facts returns what the configuration of containers depends on.
func (n Node) facts(root string) podconfig.Node {
	f := n.Facts
	if n.MemoryBytes != 0 {
		f.MemoryBytes = n.MemoryBytes
	}
	if f.AllocatableMemory == 0 {
		f.AllocatableMemory = n.Allocatable.Memory().Value()
	}
	if f.SeccompRoot == "" {
		f.SeccompRoot = filepath.Join(root, "seccomp")
	}
	return f
}

// A Runtime runs pods on a CRI runtime. It keeps the contract of
// [runtime.Runtime], and has all of the optional powers that package runtime
// knows; what the CRI runtime behind it has not got is ErrUnsupported.
type Runtime struct {
	cfg     Config
	backoff *plan.Backoff
	images  *images.Manager
	sysctls *podconfig.Sysctls
	journal *journal
	ended   *endings
	unable  *unable
	stuck   stuckSandboxes
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
	_ runtime.ImageStore           = (*Runtime)(nil)
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
	case cfg.PostStartTimeout < 0:
		return nil, fmt.Errorf("cri: Config.PostStartTimeout is negative: %v", cfg.PostStartTimeout)
	case cfg.CallTimeout < 0:
		return nil, fmt.Errorf("cri: Config.CallTimeout is negative: %v", cfg.CallTimeout)
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = 2 * time.Minute
	}
	if err := cfg.DNS.Validate(); err != nil {
		return nil, fmt.Errorf("cri: Config.DNS: %w", err)
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
	cfg.Record = brief(cfg.Record)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	backoff, err := plan.NewBackoff(cfg.Backoff)
	if err != nil {
		return nil, fmt.Errorf("cri: Config.Backoff: %w", err)
	}
	sysctls, err := podconfig.NewSysctls(cfg.Node.Facts.Kernel, cfg.UnsafeSysctls)
	if err != nil {
		return nil, fmt.Errorf("cri: Config.UnsafeSysctls: %w", err)
	}
	local, _ := cfg.Runtime.(LocalStreams)
	how := calls{timeout: cfg.CallTimeout, hook: cfg.Hooks.Called}
	cfg.Runtime = &runtimeCalls{how, cfg.Runtime}
	cfg.Images = &imageCalls{how, cfg.Images}
	r := &Runtime{
		cfg: cfg, backoff: backoff, sysctls: sysctls, log: cfg.Logger,
		journal: newJournal(filepath.Join(cfg.RootDir, "pods"), cfg.Logger), ended: newEndings(), unable: newUnable(), local: local,
	}
	cfg.Pulls.Service, cfg.Pulls.Logger = cfg.Images, cfg.Logger
	if cfg.Pulls.Dir == "" {
		cfg.Pulls.Dir = filepath.Join(cfg.RootDir, "image_manager")
	}
	if cfg.Pulls.Credentials == nil {
		cfg.Pulls.Credentials = keyring{r}
	}
	if r.images, err = images.New(cfg.Pulls); err != nil {
		return nil, fmt.Errorf("cri: Config.Pulls: %w", err)
	}
	return r, nil
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
			state = fmt.Errorf("%s: %s", bounded(c.GetReason(), maxNote), bounded(c.GetMessage(), maxWords))
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
