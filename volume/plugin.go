package volume

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Plugin knows one kind of volume. The [Manager] calls it from many
// goroutines, but never twice at a time for one [Place]; each call may block,
// and should return when its context ends. volumetest.TestPlugin checks that a
// Plugin keeps this contract.
//
// The agent may be killed at any point of SetUp and TearDown. Whatever that
// leaves is for the next SetUp to finish, or for TearDown to remove: both start
// from any state of the disk.
//
// Further powers are interfaces of one or two methods, found by assertion:
// [Refresher], [Refs], [Attacher], [Stager], [Expander], [MountOptioner], [Blocks],
// [SELinuxMounter].
type Plugin interface {
	// Name is the kubelet's: "kubernetes.io/empty-dir". It names directories
	// (escaped) and metrics, and must not change.
	Name() string

	// CanSupport reports whether spec is of this kind. It looks at the kind
	// only: what is wrong with the spec is said by SetUp.
	CanSupport(spec *Spec) bool

	// SetUp makes the volume ready, and tells where it is. It is called again
	// after it failed, after a restart of the agent, and with req.Refresh to
	// bring the content up to date; if all is as it should be it changes
	// nothing. It writes nothing outside of its Place, and nothing before it
	// has all it needs (vol-43).
	//
	// After an error the volume counts as half there, and is torn down before
	// its pod goes, unless the error is [Definite] (vol-21).
	SetUp(ctx context.Context, req Request) (SetUpResult, error)

	// TearDown removes what SetUp made, and the directory at.Dir. What the pod
	// has put there goes with it, if it was the pod's own (an emptyDir), and
	// is never touched if it was not: nothing is removed through a mount
	// ([RemoveTree]). A volume that is not there is no error.
	TearDown(ctx context.Context, at Place) error

	// Construct tells from the disk alone which volume is at a Place, if there
	// is no record of it: one that a kubelet has mounted (vol-32). The result
	// need hold only what TearDown (and Unstage) asks of it.
	ConstructSpec(at Place) (*Spec, error)

	// Stats measures a volume that is set up. errors.ErrUnsupported: this kind
	// has no figures. [DiskUsage] and [FSUsage] do the measuring.
	Stats(ctx context.Context, at Place, mounted runtime.Volume) (Stats, error)
}

// A Request says which volume to set up.
type Request struct {
	Place
	Pod  *v1.Pod // must not be changed
	Spec *Spec   // must not be changed

	// Refresh: the volume is mounted, containers use it, and what it shows may
	// have changed.
	Refresh bool

	// FSGroup is the group that the files should belong to; nil: nobody asks.
	// Plugins that set it call [Request.Own].
	FSGroup       *int64
	FSGroupPolicy *v1.PodFSGroupChangePolicy

	// FSUser is the user that all containers of the pod run as; nil: they
	// don't (vol-55).
	FSUser *int64

	// MountOptions are those of the persistent volume, and `context="…"` if
	// SELinuxLabel is set.
	MountOptions []string

	// SELinuxLabel is the label that all files of the volume have once it is
	// mounted with MountOptions; the runtime must not change it. Empty: the
	// volume is mounted without a label. Only an [SELinuxMounter] finds one.
	SELinuxLabel string

	// DevicePath is what attaching came to. Empty: nothing was to be attached.
	DevicePath string

	// Event records an event of the pod. It may be nil; use [Request.Warn].
	Event func(eventType, reason, message string)

	// Progress hears from a long walk over the files (vol-66, F-40). Nil:
	// nobody does.
	Progress func(OwnershipProgress)
}

// Warn records a warning of the pod.
func (r *Request) Warn(reason, message string) {
	if r.Event != nil {
		r.Event(v1.EventTypeWarning, reason, message)
	}
}

// Mounted is what SetUp has come to.
type SetUpResult struct {
	// Volume tells containers where it is. The zero value is a volume that
	// the runtime finds without us: an image.
	runtime.Volume

	// RefreshAt is when SetUp is to be called again, with Refresh, though
	// nothing changes before: a token ends (vol-56). Zero: no such time.
	RefreshAt time.Time
}

// Stats are the figures of a volume. What is not known is nil.
type Stats struct {
	statsapi.FsStats

	// Abnormal says, of a volume whose driver looks at its health, whether it
	// is not well, and Message how.
	Abnormal *bool
	Message  string
}

// A Refresher is a Plugin whose volumes change while they are mounted. Others
// are set up once.
type Refresher interface {
	// Refreshes reports whether SetUp is to be called again at each sync of
	// the pod, and when an object changes that the volume is made from
	// (vol-11).
	Refreshes(spec *Spec) bool
}

// An ObjectRef names an object of the API. Name is empty for all objects of the
// kind, Namespace for those that have none.
type ObjectRef struct {
	Kind, Namespace, Name string
}

// Refs is a Plugin whose volumes are made from objects: a change of one is
// pushed to [Manager.ObjectChanged], and is then seen by the pod at once instead
// of at its next sync (F-43). A volume that waits for an object which is not
// there is tried again when it appears.
type ObjectReferrer interface {
	ObjectRefs(pod *v1.Pod, spec *Spec) []ObjectRef
}

// An Attacher is a Plugin some of whose volumes are attached to the node, by
// somebody else, before they can be used (vol-16, vol-17).
type Attacher interface {
	// NeedsAttach reports whether spec is such a volume.
	NeedsAttach(ctx context.Context, spec *Spec) (bool, error)
}

// A Stager is a Plugin that prepares a volume once on the node, for all pods
// that use it, before the first SetUp and until the last TearDown (vol-20,
// vol-24). Without it each pod's volume is its own.
type Stager interface {
	// SharedName names the volume on this node: for CSI "<driver>^<handle>"
	// (vol-62). "": this one is its pod's own, and is not staged.
	SharedName(spec *Spec) (string, error)

	// Stage makes the device ready. As with SetUp, any state of the disk may
	// be what it finds, and it may be called again.
	Stage(ctx context.Context, req Request) error

	// Unstage undoes Stage; spec is what the volume was staged with, or
	// what Construct has read. A device that is not staged is no error.
	Unstage(ctx context.Context, spec *Spec) error
}

// An Expander is a Plugin whose volumes can grow while they are mounted.
type Expander interface {
	// Expand makes the file system as large as size, at least, and returns
	// what it has become. An error leaves the volume as usable as it was.
	Expand(ctx context.Context, req Request, size resource.Quantity) (resource.Quantity, error)
}

// A MountOptioner is a Plugin that mounts with the options of a persistent volume.
// Others are not set up with a volume that has any (vol-20).
type MountOptioner interface {
	SupportsMountOptions() bool
}

// Blocks is a Plugin that can give a pod a block device: SetUp of a Place with
// Block makes the link at.Dir and returns Mounted.Device (vol-74). Volumes of
// others are refused in volumeDevices.
type BlockMapper interface {
	SupportsBlock() bool
}
