package runtime

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A StatsProvider is a Runtime that counts what its pods use. Without it, or
// where it leaves out a number, cgroups can be read instead.
type StatsProvider interface {
	// ContainerStats of one container. ErrNotFound: there is none, or it does
	// not run and the runtime has no numbers of it.
	ContainerStats(ctx context.Context, containerID string) (*ContainerStats, error)

	// PodStats of all pods that run, in no order, in as few calls as the
	// runtime allows. The caller owns the result.
	PodStats(ctx context.Context) ([]PodStats, error)
}

// An ImageFSReporter is a Runtime that tells how much disk its images take.
// Without it, the disk of its directory can be looked at.
type ImageFSReporter interface {
	// ImageFS tells of the file systems of images and of containers'
	// writable layers; often they are the same.
	ImageFS(ctx context.Context) (images, containers []FSUsage, err error)
}

// A Number is a measurement that a runtime may not make. Known tells a zero from
// no answer.
type OptionalUint64 struct {
	Value uint64
	Valid bool
}

// CPUUsage is what something has used of the CPUs.
type CPUUsage struct {
	At        time.Time      // of the measurement
	CoreNanos OptionalUint64 // nanoseconds of one core, since the start
	NanoCores OptionalUint64 // thousand-millionths of a core, of late; many runtimes leave it out
}

// MemoryUsage is in bytes.
type MemoryUsage struct {
	At          time.Time
	WorkingSet  OptionalUint64 // what cannot be taken away: what evictions are decided by
	Available   OptionalUint64 // left below the limit
	Usage       OptionalUint64
	RSS         OptionalUint64
	Faults      OptionalUint64 // page faults, since the start
	MajorFaults OptionalUint64
}

// SwapUsage is in bytes.
type SwapUsage struct {
	At               time.Time
	Available, Usage OptionalUint64
}

// FSUsage is what something takes of a file system.
type FSUsage struct {
	At         time.Time
	Mountpoint string
	Bytes      OptionalUint64
	Inodes     OptionalUint64
}

// NetworkUsage counts the bytes and errors of one interface of a pod.
type NetworkUsage struct {
	Name                                 string
	RxBytes, RxErrors, TxBytes, TxErrors OptionalUint64
}

// ContainerStats is what a container uses. A part that is nil was not measured.
type ContainerStats struct {
	ID, Name      string
	CPU           *CPUUsage
	Memory        *MemoryUsage
	Swap          *SwapUsage
	WritableLayer *FSUsage
}

// PodStats is what a pod uses in all, its sandbox included, and what each of its
// running containers does. A part that is nil was not measured.
type PodStats struct {
	UID             types.UID
	Name, Namespace string
	SandboxID       string
	CPU             *CPUUsage
	Memory          *MemoryUsage
	NetworkAt       time.Time
	Network         []NetworkUsage // the default interface first
	Processes       OptionalUint64
	Containers      []ContainerStats
}
