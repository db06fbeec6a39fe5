package eviction

import (
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// A layout describes the file systems of a node: those of images, of the writable layers of
// containers, and of the rest (nodefs).
type layout int

const (
	// singleFS is a single file system.
	singleFS layout = iota
	// dedicatedImageFS has a file system for images and writable layers, and another one
	// for logs and volumes.
	dedicatedImageFS
	// splitImageFS has a file system for images only.
	splitImageFS
)

// String returns a description of the layout.
func (l layout) String() string {
	switch l {
	case singleFS:
		return "one file system"
	case dedicatedImageFS:
		return "dedicated image file system"
	case splitImageFS:
		return "split image file system"
	default:
		return "unknown"
	}
}

// fileSystems returns the layout of the node's file systems.
func (in *Inputs) fileSystems() layout {
	switch {
	case in.layout != nil:
		return *in.layout
	case in.RootDevice == "" && in.ImageDevice == "" && in.LayerDevice == "":
		return layoutByStats(in.Summary)
	default:
		return layoutByDevice(in.RootDevice, in.ImageDevice, in.LayerDevice)
	}
}

func layoutByDevice(root, images, layers string) layout {
	switch {
	case images != layers:
		return splitImageFS
	case images != root:
		return dedicatedImageFS
	default:
		return singleFS
	}
}

// layoutByStats derives the layout from a summary: file systems of equal capacity and number
// of inodes are taken to be the same one.
func layoutByStats(summary *statsapi.Summary) layout {
	if summary == nil || summary.Node.Runtime == nil {
		return singleFS
	}
	root, images, containers := summary.Node.Fs, summary.Node.Runtime.ImageFs, summary.Node.Runtime.ContainerFs
	switch {
	case differ(images, containers):
		return splitImageFS
	case differ(root, images):
		return dedicatedImageFS
	default:
		return singleFS
	}
}

func differ(a, b *statsapi.FsStats) bool {
	unlike := func(x, y *uint64) bool { return x != nil && y != nil && *x != *y }
	return a != nil && b != nil && (unlike(a.CapacityBytes, b.CapacityBytes) || unlike(a.Inodes, b.Inodes))
}

// A filesystem is one of the file systems that signals measure.
type filesystem int

const (
	noFS filesystem = iota
	nodeFS
	imageFS
)

// filesystem returns the file system that a signal measures.
func (l layout) filesystem(s Signal) filesystem {
	switch s {
	case NodeFSAvailable, NodeFSInodesFree:
		return nodeFS
	case ImageFSAvailable, ImageFSInodesFree:
		if l == singleFS {
			return nodeFS
		}
		return imageFS
	case ContainerFSAvailable, ContainerFSInodesFree:
		if l == dedicatedImageFS {
			return imageFS
		}
		return nodeFS
	default:
		return noFS
	}
}

// related reports whether two signals measure the same file system, or both memory, or both
// process IDs.
func (l layout) related(a, b Signal) bool {
	if x, y := l.filesystem(a), l.filesystem(b); x != noFS || y != noFS {
		return x == y
	}
	return a.Condition() == b.Condition()
}

// withContainerFS adds the thresholds of containerfs, which are those of the file system
// with the writable layers (rule ev-8).
func (l layout) withContainerFS(thresholds []Threshold) []Threshold {
	bytes, inodes := NodeFSAvailable, NodeFSInodesFree
	if l == dedicatedImageFS {
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

// The values of Plan.Steps, in the order in which they are taken.
const (
	deleteUnusedContainers = "DeleteAllUnusedContainers"
	deleteUnusedImages     = "DeleteUnusedImages"
)

// steps returns the steps that are taken for a signal before pods are evicted (rule ev-34).
func (l layout) steps(s Signal) []string {
	var node, image, container []string
	both := []string{deleteUnusedContainers, deleteUnusedImages}
	switch l {
	case dedicatedImageFS:
		image, container = both, both
	case splitImageFS:
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
