package runtime

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A StatsProvider is a Runtime that reports the resource usage of its pods. Without it, or where it
// omits a value, cgroups are read.
type StatsProvider interface {
	// ContainerStats returns the usage of one container. It returns ErrNotFound if the
	// container does not exist, or does not run and the runtime has no values.
	ContainerStats(ctx context.Context, containerID string) (*ContainerStats, error)

	// PodStats returns the usage of all running pods, in no order, with as few calls as the
	// runtime allows. The caller owns the result.
	PodStats(ctx context.Context) ([]PodStats, error)
}

// An ImageFSReporter is a Runtime that reports the disk usage of its images. Without it, the usage
// of the file system that contains its directory is used.
type ImageFSReporter interface {
	// ImageFS returns the usage of the file systems of images and of writable layers of
	// containers, which are often the same.
	ImageFS(ctx context.Context) (images, containers []FSUsage, err error)
}

// CPUUsage is CPU usage. Here and below, a nil number was not measured.
type CPUUsage struct {
	At        time.Time // of the measurement
	CoreNanos *uint64   // cumulative, in core-nanoseconds
	NanoCores *uint64   // current rate in billionths of a core; many runtimes omit it
}

// MemoryUsage is in bytes.
type MemoryUsage struct {
	At          time.Time
	WorkingSet  *uint64 // not reclaimable; the basis of evictions
	Available   *uint64 // left below the limit
	Usage       *uint64
	RSS         *uint64
	Faults      *uint64 // page faults, since the start
	MajorFaults *uint64
}

// SwapUsage is in bytes.
type SwapUsage struct {
	At               time.Time
	Available, Usage *uint64
}

// FSUsage is usage of a file system.
type FSUsage struct {
	At         time.Time
	Mountpoint string
	Bytes      *uint64
	Inodes     *uint64
}

// NetworkUsage counts the bytes and errors of one interface of a pod.
type NetworkUsage struct {
	Name                                 string
	RxBytes, RxErrors, TxBytes, TxErrors *uint64
}

// ContainerStats is the usage of a container. Nil fields were not measured.
type ContainerStats struct {
	ID, Name      string
	CPU           *CPUUsage
	Memory        *MemoryUsage
	Swap          *SwapUsage
	WritableLayer *FSUsage
}

// PodStats is the usage of a pod, including its sandbox, and of each of its running containers. Nil
// fields were not measured.
type PodStats struct {
	UID             types.UID
	Name, Namespace string
	SandboxID       string
	CPU             *CPUUsage
	Memory          *MemoryUsage
	NetworkAt       time.Time
	Network         []NetworkUsage // the default interface first
	Processes       *uint64
	Containers      []ContainerStats
}
