package cri

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

// Config configures a [Runtime].
type Config struct {
	// Name of the CRI runtime, the prefix of container IDs: "<name>://<id>".
	// It is remote.Client.Name or process.Name. Required: IDs must be the same
	// after a restart of the agent.
	Name string

	// Runtime and Images are the two services of a CRI runtime: those of a
	// remote.Client, a process.Runtime, or a fake. Required.
	Runtime internalapi.RuntimeService
	Images  internalapi.ImageManagerService

	// Calls configures the calls of the CRI and the streams.
	Calls CallConfig

	// Dirs are the directories that the Runtime writes to.
	Dirs Dirs

	// Node describes the machine and its configuration.
	Node Node

	// Providers supply what pods use and the CRI runtime does not have: ConfigMaps,
	// volumes, cgroups, devices.
	Providers Providers

	// Containers configures how containers are restarted.
	Containers ContainerConfig

	// Pulls configures image pulls and which pods may use images that are present.
	Pulls PullConfig

	// Record receives the events that kubectl describe prints. Messages have at
	// most 1024 bytes. It must be safe for concurrent use and must not block.
	// If nil, events are discarded.
	Record func(runtime.Event)

	// Logger receives the logs. If nil, they are discarded.
	Logger *slog.Logger

	// Hooks observe the Runtime.
	Hooks Hooks
}

// CallConfig configures the calls of the CRI and the connections of streams.
type CallConfig struct {
	// Timeout limits calls without a time limit of their own. RunPodSandbox and RestorePod
	// have twice Timeout; StopContainer and ExecSync have it in addition to the grace
	// period and the command's timeout; pulls and streams are not limited. A call
	// that succeeds after its timeout is detected when the pod is next inspected.
	// Zero means 2 minutes, the kubelet's default of runtimeRequestTimeout.
	Timeout time.Duration

	// Starts is the maximum number of calls of RunPodSandbox, CreateContainer and
	// StartContainer in progress; one of each, and one sandbox in the host network, are
	// always possible. Further pods wait for their turn, and for a call that hangs a few
	// seconds at most. Zero means that the number follows the latency of the runtime,
	// from 2 to 256; negative means no limit, as in the kubelet.
	Starts int

	// Streams connects to the streaming server of the runtime; a streaming.Client
	// is one. If nil, streams require Config.Runtime to implement [LocalStreams];
	// stream URLs are available in either case.
	Streams Streamer
}

// Dirs are the directories that a [Runtime] writes to, in the kubelet's layout. [New] makes
// relative paths absolute, because a CRI runtime has a working directory of its own.
type Dirs struct {
	// Root contains a directory per pod, for its hosts file, its termination messages
	// and its checkpoint. Empty means /var/lib/kubelet.
	Root string

	// PodLogs contains the logs of containers. Empty means /var/log/pods.
	PodLogs string

	// ContainerLogs receives the legacy symbolic links that log collectors read,
	// usually /var/log/containers. Empty means no links.
	ContainerLogs string
}

// complete sets the defaults and makes the paths absolute.
func (d *Dirs) complete() error {
	d.Root = cmp.Or(d.Root, "/var/lib/kubelet")
	d.PodLogs = cmp.Or(d.PodLogs, "/var/log/pods")
	for _, dir := range []*string{&d.Root, &d.PodLogs, &d.ContainerLogs} {
		if *dir == "" || filepath.IsAbs(*dir) || strings.HasPrefix(*dir, "/") {
			continue
		}
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return err
		}
		*dir = abs
	}
	return nil
}

// Node describes the machine and its configuration.
type Node struct {
	// IPs returns the addresses of the machine, the primary one first, for
	// status.hostIP and pods in the host network. If nil, there are none.
	IPs func() []string

	// Allocatable supplies the values of a resourceFieldRef for containers without
	// limits. If nil, the values are 0.
	Allocatable v1.ResourceList

	// Facts are further properties of the machine; [ReadFacts] reads them on
	// Linux. A zero AllocatableMemory is taken from Allocatable. An empty
	// Security.SeccompDir means the directory seccomp in Dirs.Root.
	Facts podconfig.Node

	// DNS configures the resolv.conf of containers. New returns an error if it does
	// not fit into a resolv.conf.
	DNS DNS

	// UnsafeSysctls are the sysctls that pods may set in addition to the safe ones:
	// names, or prefixes that end with "*". Each must be namespaced. Runtime.Admit
	// rejects pods with other unsafe sysctls.
	UnsafeSysctls []string
}

// facts returns Facts with defaults from the other fields and the root directory.
func (n Node) facts(root string) podconfig.Node {
	f := n.Facts
	if f.AllocatableMemory == 0 {
		f.AllocatableMemory = n.Allocatable.Memory().Value()
	}
	if f.Security.SeccompDir == "" {
		f.Security.SeccompDir = filepath.Join(root, "seccomp")
	}
	return f
}

// Providers are the optional components that supply what pods use and the CRI
// runtime does not have. All must be safe for concurrent use.
type Providers struct {
	// Ledger contains the pods that belong to this node ([OpenLedger]). The others in
	// the CRI runtime and in Dirs.PodLogs are never changed or removed, and SyncPod adds
	// the pods that it creates. If nil, everything there belongs to this node: nothing
	// else may use the CRI runtime and Dirs.PodLogs.
	Ledger *Ledger

	// Objects provides ConfigMaps, Secrets and Services. If nil, containers whose
	// environment refers to a ConfigMap or Secret are not created, and there are no
	// service environment variables.
	Objects Objects

	// Managers assign devices and CPUs to containers. If nil, none are assigned.
	Managers Managers

	// RuntimeClass returns the runtime handler of a RuntimeClass. Its error, which must name
	// the class, is the message of an event. If nil, pods with a runtimeClassName are not
	// started.
	RuntimeClass func(name string) (handler string, err error)

	// UserNamespaces allocates the IDs of pods with hostUsers: false; package userns
	// has an Allocator. If nil, such pods are not started.
	UserNamespaces UserNamespaces

	// Volumes has what containers need of volumes in addition to their paths;
	// volume.Manager implements it. If nil, there are no supplemental groups, and sub-paths
	// are resolved once, before the runtime opens the result.
	Volumes Volumes

	// Cgroups has the cgroups of pods; cm.Manager implements it. If nil, the runtime
	// chooses them, and they have no limits.
	Cgroups Cgroups

	// RestoreFrom returns the directory, an absolute path, of the checkpoint from which the containers of a new pod are
	// restored (KEP-5823, alpha); "" if the pod is created from its spec. It is called by SyncPod until a restore has
	// begun, and must ensure that the checkpoint is of a pod with the same spec. Its error, for example that the
	// checkpoint is not complete yet, is the message of an event; the pod remains Pending and the next sync calls it
	// again. If nil, no pod is restored.
	RestoreFrom func(pod *v1.Pod) (dir string, err error)
}

// Volumes has what containers need of volumes in addition to their paths.
type Volumes interface {
	// Groups returns the supplemental groups of the pod's persistent volumes. All containers
	// of the pod are members of them.
	Groups(pod *v1.Pod) []int64

	// SubPath returns the host path of a volume's sub-path, protected against containers
	// that write to the volume meanwhile. If it returns errors.ErrUnsupported, the path is
	// resolved once.
	SubPath(ctx context.Context, sub runtime.SubPath) (path string, err error)
}

// Cgroups has the cgroups of pods.
type Cgroups interface {
	// CgroupParent returns the cgroup of the pod. If it is "", the runtime chooses one.
	CgroupParent(pod *v1.Pod) string

	// Resize sets one resource of the pod's cgroup, cpu or memory, for an in-place resize:
	// after has all resources of the pod.
	Resize(ctx context.Context, pod *v1.Pod, name v1.ResourceName, after v1.ResourceRequirements) error
}

// UserNamespaces allocates the IDs that the user namespace of a pod maps to.
type UserNamespaces interface {
	// Allocate returns the mappings of the pod, the same ones for each call until
	// the pod is removed. SyncPod calls it for each sandbox and each container.
	Allocate(pod types.UID) (userns.Mappings, error)

	// Adopt keeps the mappings that a sandbox of the pod has from other pods. Each
	// inspection of the pod calls it. An error is logged.
	Adopt(pod types.UID, m userns.Mappings) error
}

// ContainerConfig configures how containers are restarted.
type ContainerConfig struct {
	// Backoff delays restarts of containers that crash. Zero values mean the
	// kubelet's defaults.
	Backoff plan.BackoffConfig

	// PostStartTimeout limits a postStart hook. A hook that exceeds it has failed,
	// and its container is stopped. Zero means no limit, as in the kubelet: the
	// remaining containers of the pod wait for the hook, but a deletion does not.
	PostStartTimeout time.Duration

	// IgnoreRestartAll ignores container restart rules with the action
	// RestartAllContainers.
	IgnoreRestartAll bool
}

// PullConfig configures image pulls.
type PullConfig struct {
	// Config configures the image manager. Service and Logger are set by New. An
	// empty Dir means the directory image_manager in Dirs.Root. If Credentials is
	// nil, they are looked up in the pod's imagePullSecrets and in Keyring.
	images.Config

	// Keyring contains the node's credentials: files and plugins. The
	// imagePullSecrets of the pod are tried first. If nil, the node has none.
	Keyring credentials.Keyring

	// ByRuntimeHandler pulls and inspects images by the runtime handler of the pod's
	// class, for runtimes that store images per handler (the kubelet's feature
	// gate RuntimeClassInImageCriApi).
	ByRuntimeHandler bool

	// Ahead pulls the images of all containers of a new pod while its sandbox is
	// created, instead of each image before its container. The SyncPod that
	// creates the sandbox returns after the last pull. Config limits the number
	// of parallel pulls.
	Ahead bool
}
