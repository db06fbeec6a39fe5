package eviction

import (
	v1 "k8s.io/api/core/v1"
)

// A Signal names one figure of the node that thresholds are set on.
type Signal string

// The signals (section 2.1).
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

// What a pod is starved of, for want of what the API has no name for.
const (
	resourceInodes v1.ResourceName = "inodes"
	resourcePIDs   v1.ResourceName = "pids"
)

// A fact is what is known of a signal. The order of facts breaks ties between
// signals, so that no map decides.
type fact struct {
	signal    Signal
	resource  v1.ResourceName
	condition v1.NodeConditionType
}

var facts = []fact{
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

// place is the signal's index in facts; one that is not known comes last.
func (s Signal) place() int {
	for i := range facts {
		if facts[i].signal == s {
			return i
		}
	}
	return len(facts)
}

func (s Signal) known() bool { return s.place() < len(facts) }

func (s Signal) fact() fact {
	if i := s.place(); i < len(facts) {
		return facts[i]
	}
	return fact{signal: s}
}

// Resource returns what pods are starved of when the signal is low: memory,
// ephemeral-storage, inodes or pids. Empty: the signal is not known.
func (s Signal) Resource() v1.ResourceName { return s.fact().resource }

// Condition returns the node condition that the signal makes true.
func (s Signal) Condition() v1.NodeConditionType { return s.fact().condition }

func (s Signal) isMemory() bool { return s.Resource() == v1.ResourceMemory }

// isContainerFS reports whether thresholds of the signal follow from others and
// are not a user's to set (ev-8).
func (s Signal) isContainerFS() bool {
	return s == ContainerFSAvailable || s == ContainerFSInodesFree
}
