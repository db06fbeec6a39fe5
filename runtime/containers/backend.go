package containers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Backend runs containers, virtual machines or anything else that starts, exits with a code and is
// removed. Order, restarts, back-off, probes, hooks, termination and status are computed above it.
//
// All methods must be safe for concurrent use and return when ctx is done; the call may take effect
// nevertheless. IDs are the backend's own.
type Backend interface {
	// Run creates and starts one instance of a container and returns its ID. It returns when the
	// instance runs, or when it is queued and listed as [Queued].
	//
	// Key identifies the instance: if there is one with this Key, running or exited, Run returns
	// its ID and starts nothing, even if another call of Run with this Key is in progress or was
	// made by another process. A response may be lost and the agent may be killed at any time.
	Run(ctx context.Context, c Container) (id string, err error)

	// Stop terminates an instance: it asks it to exit, and kills it after the grace period. Zero
	// kills it at once. It returns nil only when the instance does not run; a queued instance
	// never starts. A second call with a shorter grace period shortens it. Stopping an instance
	// that has exited or does not exist is no error.
	Stop(ctx context.Context, id string, grace time.Duration) error

	// Remove removes an instance that does not run. It is no error if it does not exist.
	Remove(ctx context.Context, id string) error

	// List returns all instances that were not removed, in any order; an incomplete list must be
	// an error, and so must a list with a ctx that is done. Instances whose Record is not of this package are ignored.
	List(ctx context.Context) ([]State, error)
}

// A Container is one instance of a container to run.
type Container struct {
	// Key is the name of the instance: a DNS label that is unique in the backend.
	Key string

	// Record is opaque and has one to four KiB. The backend stores it with the instance, in metadata
	// that holds as much, which many labels and tags do not, and returns it unchanged in
	// State.Record. A restarted agent adopts the instance by it, without files of its own.
	Record string

	// Pod is the pod of the container. Name is the container's name in the pod's spec, and
	// Attempt the number of its restarts.
	Pod     Pod
	Name    string
	Attempt uint32

	// Group is the ID of the pod's group if the backend is a [Grouper], else "".
	Group string

	// Image as in the spec, or the reference that Puller.Pull returned.
	Image string

	// Command and Args replace the entrypoint and the arguments of the image, if not empty.
	Command, Args []string

	// WorkingDir replaces that of the image, if not empty.
	WorkingDir string

	// Env is complete: ConfigMaps, Secrets and fields are resolved, and references expanded.
	Env []EnvVar

	// Mounts are host directories and files. Empty unless Support.Mounts is set.
	Mounts []Mount

	// Volumes are the volumes whose files the backend copies into the instance. Empty unless
	// Support.Files is set.
	Volumes []Volume

	// LogPath is the path of the log. A backend on this host that is no [LogReader] appends to it in
	// the CRI's log format ("<RFC 3339 time> stdout F <line>"). Without a log, kubectl logs has no
	// file.
	LogPath string

	// CPUMillis is the CPU limit in thousandths of a CPU, Memory the memory limit in bytes. Zero
	// means no limit.
	CPUMillis, Memory int64

	// Stdin and TTY are fields of the spec.
	Stdin, TTY bool

	// Config is the container as a CRI runtime would receive it, for everything else: users,
	// capabilities, devices, signals, resources. It must not be changed.
	Config *runtimeapi.ContainerConfig
}

// A Pod identifies the pod of a container or group.
type Pod struct {
	UID             types.UID
	Namespace, Name string
}

// An EnvVar is a variable of the environment.
type EnvVar struct{ Name, Value string }

// A Mount is a file or directory of this host in a container.
type Mount struct {
	HostPath      string
	ContainerPath string
	ReadOnly      bool
}

// A Volume is the mount of a volume as data.
type Volume struct {
	// Name is the name of the pod's volume. SubPath is the file or directory of it that is mounted, if
	// not empty.
	Name, SubPath string

	// Path is the directory in the instance, or the file if Files is one file without a Path.
	Path string

	// Files are the content, read-only for the container. They may be secret, and are not stored.
	Files []runtime.File `json:"-"`
}

// A Phase is the phase of an instance.
type Phase int

// The phases. An instance that could not be started is Exited without a StartedAt.
const (
	Queued Phase = iota
	Running
	Exited
)

// String returns "queued", "running" or "exited".
func (p Phase) String() string {
	switch p {
	case Queued:
		return "queued"
	case Running:
		return "running"
	case Exited:
		return "exited"
	}
	return fmt.Sprintf("Phase(%d)", int(p))
}

// A State is the state of one instance.
type State struct {
	// ID is chosen by the backend. Key and Record are fields of the Container.
	ID, Key, Record string

	Phase Phase

	// StartedAt and FinishedAt are the times of the instance, not of the observation: each List
	// returns the same. Zero if it has not started or finished.
	StartedAt, FinishedAt time.Time

	// ExitCode, Reason and Message describe an exit. The code after a signal is 128 and its number.
	// An empty Reason means Completed, or Error if the code is not 0. Message is the termination
	// message, if the backend knows it and the container does not write it to its mounted file.
	ExitCode int32
	Reason   string
	Message  string

	// IP is the address of the instance. That of the first running instance is the pod's if the
	// backend is not a [Grouper]. May be empty.
	IP string
}

// A Grouper is a Backend with groups of containers that share a network: one group for a pod. Without
// it, containers of a pod do not reach each other by localhost, and a pod with two or more containers
// that run at the same time is rejected unless Support.SeparateContainers is set.
type Grouper interface {
	// RunGroup creates a group and returns its ID. Key is unique, as in Backend.Run.
	RunGroup(ctx context.Context, g Group) (id string, err error)

	// StopGroup stops the group and whatever runs in it. It is no error if it does not exist.
	StopGroup(ctx context.Context, id string) error

	// RemoveGroup removes a stopped group; its instances were removed. It is no error if it does
	// not exist.
	RemoveGroup(ctx context.Context, id string) error

	// Groups returns all groups that were not removed.
	Groups(ctx context.Context) ([]GroupState, error)
}

// A Group is a group to create.
type Group struct {
	Key, Record string // as in Container
	Pod         Pod

	// Config is the pod as a CRI runtime would receive it: hostname, DNS, ports. It must not be
	// changed.
	Config *runtimeapi.PodSandboxConfig
}

// A GroupState is the state of a group.
type GroupState struct {
	ID, Key, Record string
	Running         bool
	IPs             []string // the primary one first
}

// An Execer is a Backend that runs commands in its instances. Without it, kubectl exec is unsupported,
// and a pod with an exec probe or hook is rejected.
type Execer interface {
	// Exec runs cmd until it exits and returns its exit code; a code other than 0 is no error.
	// Stdout and Stderr are not nil. It must not wait for a Read of Stdin after the exit.
	Exec(ctx context.Context, id string, cmd []string, s runtime.Streams) (exitCode int32, err error)
}

// An Attacher is a Backend that connects to the main process of an instance. Without it, kubectl
// attach is unsupported.
type Attacher interface {
	// Attach copies the streams until the instance exits or ctx is done, as Exec does.
	Attach(ctx context.Context, id string, s runtime.Streams) error
}

// A StatsProvider is a Backend that measures its instances. Without it, kubectl top, the summary and
// eviction have no usage of containers.
type StatsProvider interface {
	// Stats returns the usage of all running instances, by ID.
	Stats(ctx context.Context) (map[string]Stats, error)
}

// Stats are the resource usage of an instance.
type Stats struct {
	CPU    time.Duration // consumed since the start
	Memory uint64        // working set, in bytes
}

// A Puller is a Backend that pulls images before it runs them. Without it, an image is pulled by Run,
// whatever the pull policy is, without the pod's pull secrets; and a failure is a failed start
// (RunContainerError).
type Puller interface {
	// Pull pulls an image and returns the reference to run it by. auth is empty for an anonymous
	// pull.
	Pull(ctx context.Context, image string, auth Auth) (ref string, err error)

	// Images returns the images that are present: references to the names they were pulled by.
	Images(ctx context.Context) (map[string][]string, error)
}

// Auth are the credentials of a pull.
type Auth struct{ Username, Password, Server, IdentityToken, RegistryToken string }

// An Updater is a Backend that replaces the files of running instances. Without it, an instance has the files
// of its start until it is restarted: a program that uses a service account token has an invalid one after its
// expiration, usually an hour.
type Updater interface {
	// UpdateFiles replaces the content of a volume of a running instance: Volume.Path identifies it. Files
	// that are not in v.Files are removed. It is called again after an error, and at least once for each
	// volume of an instance: a queued or repeated Run may have started it with older files.
	// Mounts with a SubPath are not updated, as in the kubelet.
	UpdateFiles(ctx context.Context, id string, v Volume) error
}

// A Watcher is a Backend that reports changes. Without it, changes are found by listing, once a second.
type Watcher interface {
	// Watch calls changed with the Record of an instance after each change of its state can be
	// listed. It blocks until ctx is done.
	Watch(ctx context.Context, changed func(record string)) error
}
