package eviction

import (
	v1 "k8s.io/api/core/v1"
)

// A Signal is a measurement of the node that thresholds can be set on.
type Signal string

// The signals.
const (
	MemoryAvailable            Signal = "memory.available"
	AllocatableMemoryAvailable Signal = "allocatableMemory.available"
	NodeFSAvailable            Signal = "nodefs.available"
	NodeFSInodesFree           Signal = "nodefs.inodesFree"
	ImageFSAvailable           Signal = "imagefs.available"
	ImageFSInodesFree          Signal = "imagefs.inodesFree"
	ContainerFSAvailable       Signal = "containerfs.available"
	ContainerFSInodesFree      Signal = "containerfs.inodesFree"
	PIDAvailable               Signal = "pid.available"
)

// The resources that the API has no name for.
const (
	resourceInodes v1.ResourceName = "inodes"
	resourcePIDs   v1.ResourceName = "pids"
)

// A signalInfo describes a signal. The order of signalInfos breaks ties between signals.
type signalInfo struct {
	signal    Signal
	resource  v1.ResourceName
	condition v1.NodeConditionType
}

var signalInfos = []signalInfo{
	{MemoryAvailable, v1.ResourceMemory, v1.NodeMemoryPressure},
	{AllocatableMemoryAvailable, v1.ResourceMemory, v1.NodeMemoryPressure},
	{NodeFSAvailable, v1.ResourceEphemeralStorage, v1.NodeDiskPressure},
	{NodeFSInodesFree, resourceInodes, v1.NodeDiskPressure},
	{ImageFSAvailable, v1.ResourceEphemeralStorage, v1.NodeDiskPressure},
	{ImageFSInodesFree, resourceInodes, v1.NodeDiskPressure},
	{ContainerFSAvailable, v1.ResourceEphemeralStorage, v1.NodeDiskPressure},
	{ContainerFSInodesFree, resourceInodes, v1.NodeDiskPressure},
	{PIDAvailable, resourcePIDs, v1.NodePIDPressure},
}

// index returns the signal's index in signalInfos; their number if it is unsupported.
func (s Signal) index() int {
	for i := range signalInfos {
		if signalInfos[i].signal == s {
			return i
		}
	}
	return len(signalInfos)
}

func (s Signal) supported() bool { return s.index() < len(signalInfos) }

func (s Signal) info() signalInfo {
	if i := s.index(); i < len(signalInfos) {
		return signalInfos[i]
	}
	return signalInfo{signal: s}
}

// Resource returns the resource that the signal measures: memory, ephemeral-storage, inodes
// or pids. It is empty for an unsupported signal.
func (s Signal) Resource() v1.ResourceName { return s.info().resource }

// Condition returns the node condition that is true while a threshold of the signal is met.
// It is empty for an unsupported signal.
func (s Signal) Condition() v1.NodeConditionType { return s.info().condition }

func (s Signal) isMemory() bool { return s.Resource() == v1.ResourceMemory }

// isContainerFS reports whether thresholds of the signal are derived from those of others
// and cannot be configured (rule ev-8).
func (s Signal) isContainerFS() bool {
	return s == ContainerFSAvailable || s == ContainerFSInodesFree
}
