package eviction

import (
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// A Layout says which file systems a node has for images, for the writable
// layers of containers, and for all else.
type Layout int

// The layouts (ev-11).
const (
	// SingleFS is one file system for everything.
	SingleFS Layout = iota
	// DedicatedImageFS has one for images and layers, and another for logs and
	// volumes.
	DedicatedImageFS
	// SplitImageFS has one for images alone.
	SplitImageFS
)

// String returns the layout in words.
func (l Layout) String() string {
	switch l {
	case SingleFS:
		return "one file system"
	case DedicatedImageFS:
		return "dedicated image file system"
	case SplitImageFS:
		return "split image file system"
	default:
		return "unknown"
	}
}

// LayoutByDevice tells the layout by the devices that hold the node's root
// directory, images and layers. differ says that the runtime gave different
// figures for images and layers though they share a device, which then counts as
// a dedicated one (ev-11).
func LayoutByDevice(root, images, containers string, differ bool) Layout {
	switch {
	case images != containers:
		return SplitImageFS
	case images != root || differ:
		return DedicatedImageFS
	default:
		return SingleFS
	}
}

// LayoutByStats guesses the layout from a summary, for who cannot tell devices:
// file systems of the same size and number of inodes are taken for one.
func LayoutByStats(summary *statsapi.Summary) Layout {
	if summary == nil || summary.Node.Runtime == nil {
		return SingleFS
	}
	root, images, containers := summary.Node.Fs, summary.Node.Runtime.ImageFs, summary.Node.Runtime.ContainerFs
	switch {
	case differ(images, containers):
		return SplitImageFS
	case differ(root, images):
		return DedicatedImageFS
	default:
		return SingleFS
	}
}

func differ(a, b *statsapi.FsStats) bool {
	unlike := func(x, y *uint64) bool { return x != nil && y != nil && *x != *y }
	return a != nil && b != nil && (unlike(a.CapacityBytes, b.CapacityBytes) || unlike(a.Inodes, b.Inodes))
}

// A filesystem is what a signal is a figure of.
type filesystem int

const (
	noFS filesystem = iota
	nodeFS
	imageFS
)

// of returns which file system a signal is about, if it is one.
func (l Layout) of(s Signal) filesystem {
	switch s {
	case NodeFSAvailable, NodeFSInodesFree:
		return nodeFS
	case ImageFSAvailable, ImageFSInodesFree:
		if l == SingleFS {
			return nodeFS
		}
		return imageFS
	case ContainerFSAvailable, ContainerFSInodesFree:
		if l == DedicatedImageFS {
			return imageFS
		}
		return nodeFS
	default:
		return noFS
	}
}

// together reports whether two signals are about the same thing: the same file
// system, or both about memory, or both about processes.
func (l Layout) together(a, b Signal) bool {
	if x, y := l.of(a), l.of(b); x != noFS || y != noFS {
		return x == y
	}
	return a.Condition() == b.Condition()
}

// withContainerFS adds the thresholds of containerfs, which are those of the file
// system that layers are on (ev-8).
func (l Layout) withContainerFS(thresholds []Threshold) []Threshold {
	bytes, inodes := NodeFSAvailable, NodeFSInodesFree
	if l == DedicatedImageFS {
		bytes, inodes = ImageFSAvailable, ImageFSInodesFree
	}
	all := make([]Threshold, 0, len(thresholds)+4)
	for _, t := range thresholds {
		if !t.Signal.isContainerFS() {
			all = append(all, t)
		}
	}
	for _, t := range all {
		switch t.Signal {
		case bytes:
			t.Signal = ContainerFSAvailable
		case inodes:
			t.Signal = ContainerFSInodesFree
		default:
			continue
		}
		all = append(all, t)
	}
	return all
}

// A Step is something that frees a resource without ending a pod.
type Step string

// The steps, in their order.
const (
	UnusedContainers Step = "DeleteAllUnusedContainers"
	UnusedImages     Step = "DeleteUnusedImages"
)

// steps returns what can be done for a signal before pods are evicted (section
// 2.4, ev-34).
func (l Layout) steps(s Signal) []Step {
	var node, image, container []Step
	both := []Step{UnusedContainers, UnusedImages}
	switch l {
	case DedicatedImageFS:
		image, container = both, both
	case SplitImageFS:
		node, image, container = both[:1], both[1:], both[:1]
	default:
		node, image, container = both, both, both
	}
	switch s {
	case NodeFSAvailable, NodeFSInodesFree:
		return node
	case ImageFSAvailable, ImageFSInodesFree:
		return image
	case ContainerFSAvailable, ContainerFSInodesFree:
		return container
	default:
		return nil
	}
}
