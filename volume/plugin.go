package volume

import (
	"context"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Plugin implements one kind of volume. The [Manager] calls it concurrently, but never
// concurrently for the same [Place]. A call may block and should return when its context is
// done. volumetest.TestPlugin checks the contract.
//
// The agent may be killed at any point of SetUp and TearDown. Both must therefore accept any
// state of the disk: the next SetUp completes, or TearDown removes, what the canceled call left.
//
// Optional capabilities are interfaces of one to three methods that a Plugin may implement, and that
// are found by compose.As:
// [Refresher], [ObjectReferrer], [Attacher], [Stager], [Expander], [MountOptioner],
// [BlockMapper], [SELinuxMounter], [HealthReporter].
type Plugin interface {
	// Name returns the kubelet's name of the plugin, such as "kubernetes.io/empty-dir". It
	// is part of directory names (escaped) and a label of metrics, and must not change.
	Name() string

	// CanSupport reports whether spec is of this kind. It must not validate the spec
	// further; SetUp does.
	CanSupport(spec *Spec) bool

	// SetUp sets up the volume for a pod and returns its path or device. It is called
	// again after an error, after a restart of the agent, and with req.Refresh to update
	// the content, and must be idempotent. It must not write outside its Place, nor
	// before it has fetched everything that it needs.
	//
	// After an error the volume is uncertain and is torn down before its pod terminates,
	// unless the error is [Definite].
	SetUp(ctx context.Context, req Request) (SetUpResult, error)

	// TearDown removes what SetUp created, and the directory at.Dir. It removes data of
	// the pod only if the pod owns it (an emptyDir); it must not remove anything through
	// a mount (see [RemoveTree]). It returns nil if the volume does not exist.
	TearDown(ctx context.Context, at Place) error

	// ConstructSpec returns the spec of the volume at a Place, from the disk alone. It is
	// called for a volume without a checkpoint, such as one that a kubelet mounted. The
	// result needs only the fields that TearDown and Unstage read.
	ConstructSpec(at Place) (*Spec, error)

	// Stats returns the usage of a volume that is set up; see [DiskUsage] and [FSUsage].
	// Unknown values are nil.
	// It returns errors.ErrUnsupported if the kind has no usage.
	Stats(ctx context.Context, at Place, mounted runtime.Volume) (statsapi.FsStats, error)
}

// A Request specifies a volume to set up, refresh, stage or expand.
type Request struct {
	Place
	Pod  *v1.Pod // must not be changed
	Spec *Spec   // must not be changed

	// StagedSpec is the spec that a volume of a [Stager] is staged with. It may be that of
	// another persistent volume with the same SharedName. It is nil if the volume is not
	// staged, and for Stage. It must not be changed.
	StagedSpec *Spec

	// Refresh means that the volume is mounted and in use, and that its content may be
	// outdated.
	Refresh bool

	// FSGroup is the group that files should belong to, from the pod's security context.
	// If nil, ownership is not changed. Plugins apply it with [Request.SetOwnership].
	FSGroup       *int64
	FSGroupPolicy *v1.PodFSGroupChangePolicy

	// FSUser is the user that all containers of the pod run as. It is nil if they run as
	// different users, or as the user of an image.
	FSUser *int64

	// MountOptions are the options of the persistent volume, and `context="…"` if
	// SELinuxLabel is set.
	MountOptions []string

	// SELinuxLabel is the label of all files of the volume once it is mounted with
	// MountOptions; the runtime must not change it. Empty means that the volume is
	// mounted without a label. It is set only for an [SELinuxMounter].
	SELinuxLabel string

	// DevicePath is the path of the attached device; empty if the volume is not attachable.
	DevicePath string

	// Event records an event of the pod. It may be nil; see [Request.Warn].
	Event func(eventType, reason, message string)

	// Progress is called every 30 seconds while [Request.SetOwnership] runs, on another goroutine, with
	// the number of entries inspected and changed. It may be nil.
	Progress func(visited, changed int64, elapsed time.Duration)
}

// Warn records a warning event of the pod.
func (r *Request) Warn(reason, message string) {
	if r.Event != nil {
		r.Event(v1.EventTypeWarning, reason, message)
	}
}

// A SetUpResult is the result of Plugin.SetUp.
type SetUpResult struct {
	// Volume is the path or device that containers get. The zero value means that the
	// runtime provides the volume itself, as it does for an image.
	runtime.Volume

	// RefreshAt is the time at which SetUp is called again with Refresh even if nothing
	// changes, because a token expires. Zero means no such time.
	RefreshAt time.Time
}

// A Refresher is a Plugin whose volumes may change while they are mounted. Volumes of other
// plugins are set up once.
type Refresher interface {
	// Refreshes reports whether SetUp must be called again at each sync of the pod, and
	// when an object that the volume refers to changes.
	Refreshes(spec *Spec) bool
}

// An ObjectReferrer is a Plugin whose volumes are made from API objects. After
// [Manager.ObjectChanged] such a volume is refreshed immediately instead of at the next sync of
// its pod, and a volume that waits for the object is retried.
type ObjectReferrer interface {
	// ObjectRefs returns the objects that the volume is made from. Only Kind, Namespace and
	// Name are set. An empty Name means all objects of the kind; Namespace is empty for
	// cluster-scoped objects.
	ObjectRefs(pod *v1.Pod, spec *Spec) []v1.ObjectReference
}

// An Attacher is a Plugin with volumes that the attach/detach controller must attach to the
// node before they can be mounted. Volumes of other plugins are mounted without being attached.
type Attacher interface {
	// NeedsAttach reports whether spec must be attached.
	NeedsAttach(ctx context.Context, spec *Spec) (bool, error)

	// AttachLimitExceeded reports whether the last attempt to attach spec has failed because
	// the node has reached its limit of attached volumes; a plugin without limits returns
	// false. It is called for a volume that is not attached when [Manager.Mount] times out. If
	// it returns true, the error of Mount wraps a [*runtime.Rejection] with the reason
	// "VolumeAttachmentLimitExceeded", which fails the pod, so that its controller replaces
	// it. After an error the pod waits.
	AttachLimitExceeded(ctx context.Context, spec *Spec) (bool, error)
}

// A Stager is a Plugin that stages a volume once per node before it is set up for pods: Stage is
// called before the first SetUp, Unstage after the last TearDown. Volumes of other plugins are only set up.
type Stager interface {
	// SharedName returns the name of the volume on this node, for CSI
	// "<driver>^<handle>". Empty means that the volume belongs to one pod and is not
	// staged. Persistent volumes with the same name are staged once, with the spec of the
	// first; see [Request.StagedSpec].
	SharedName(spec *Spec) (string, error)

	// Stage prepares the device. As SetUp, it must be idempotent and accept any state of
	// the disk.
	Stage(ctx context.Context, req Request) error

	// Unstage reverts Stage. spec is the spec that the volume was staged with, or the
	// result of ConstructSpec. It returns nil if the device is not staged.
	Unstage(ctx context.Context, spec *Spec) error
}

// stager returns the Stager of a volume with a SharedName.
func stager(p Plugin) Stager {
	s, _ := compose.As[Stager](p)
	return s
}

// An Expander is a Plugin whose volumes can be expanded while they are mounted. Volumes of
// other plugins keep their size.
type Expander interface {
	// Expand expands the file system to at least size and returns its new size. After an
	// error the volume must remain usable.
	Expand(ctx context.Context, req Request, size resource.Quantity) (resource.Quantity, error)
}

// A MountOptioner is a Plugin that applies the mount options of persistent volumes. A volume
// with mount options of another plugin is not set up.
type MountOptioner interface {
	// SupportsMountOptions reports whether mount options are applied.
	SupportsMountOptions() bool
}

// A BlockMapper is a Plugin with block volumes: SetUp of a Place with Block creates the symbolic
// link Place.Dir and returns a SetUpResult with Device. Volumes of other plugins are rejected in
// volumeDevices.
type BlockMapper interface {
	// SupportsBlock reports whether block volumes are supported.
	SupportsBlock() bool
}

// A HealthReporter is a Plugin that reports the health of its volumes. Volumes of other plugins have
// no conditions.
type HealthReporter interface {
	// Health returns the adverse conditions of a volume that is set up, in any order; none
	// means that the volume is healthy as far as the plugin observes. It returns
	// errors.ErrUnsupported if the health of the volume is not monitored. After another error
	// the conditions reported before remain. It is called only if Config.HealthChanged is set,
	// in the period of Config.StatsPeriod.
	Health(ctx context.Context, at Place) ([]v1.VolumeHealthCondition, error)
}

// optional are the optional interfaces of a Plugin.
func optional() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[Refresher](), reflect.TypeFor[ObjectReferrer](), reflect.TypeFor[Attacher](),
		reflect.TypeFor[Stager](), reflect.TypeFor[Expander](), reflect.TypeFor[MountOptioner](), reflect.TypeFor[BlockMapper](),
		reflect.TypeFor[SELinuxMounter](), reflect.TypeFor[HealthReporter](),
	}
}
