package eviction

import (
	"errors"
	"fmt"
	"math"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// An Observation is the measured value of a signal.
type Observation struct {
	Signal              Signal
	Available, Capacity int64     // bytes, inodes or processes; not negative
	At                  time.Time // time of the measurement; zero if unknown

	// Err is the reason why the signal is not evaluated: the measurement failed or is
	// impossible.
	Err error
}

// observe returns the signals of a summary. A signal that is missing in the summary is not
// observed. memory, if it is not nil, replaces the working set for memory.available.
// machine is the memory of the node in bytes, as a check; zero disables it.
func observe(summary *statsapi.Summary, memory *Observation, machine int64) (observed []Observation, invalid []Observation) {
	if summary == nil {
		summary = new(statsapi.Summary)
	}
	o := observer{}
	node := &summary.Node
	switch {
	case memory != nil && memory.Err != nil:
	case memory != nil:
		if memory.Available < 0 || memory.Capacity < 0 {
			o.reject(MemoryAvailable, fmt.Sprintf("available %d of %d", memory.Available, memory.Capacity))
		} else {
			o.observe(MemoryAvailable, uint64(memory.Available), uint64(memory.Capacity), memory.At)
		}
	default:
		o.workingSet(MemoryAvailable, node.Memory, machine)
	}
	for i := range node.SystemContainers {
		if c := &node.SystemContainers[i]; c.Name == statsapi.SystemContainerPods {
			o.workingSet(AllocatableMemoryAvailable, c.Memory, machine)
			break
		}
	}
	o.filesystem(NodeFSAvailable, NodeFSInodesFree, node.Fs)
	if node.Runtime != nil {
		o.filesystem(ImageFSAvailable, ImageFSInodesFree, node.Runtime.ImageFs)
		o.filesystem(ContainerFSAvailable, ContainerFSInodesFree, node.Runtime.ContainerFs)
	}
	o.processes(node.Rlimit)
	return o.observed, o.invalid
}

type observer struct {
	observed []Observation
	invalid  []Observation
}

func (o *observer) reject(s Signal, reason string) {
	o.invalid = append(o.invalid, Observation{Signal: s, Err: errors.New(reason)})
}

// observe appends an observation unless it is impossible.
func (o *observer) observe(s Signal, available, capacity uint64, at time.Time) {
	switch {
	case available > math.MaxInt64 || capacity > math.MaxInt64:
		o.reject(s, fmt.Sprintf("available %d of %d: negative, where it was computed", available, capacity))
	case capacity == 0:
		o.reject(s, "capacity is zero")
	case available > capacity:
		o.reject(s, fmt.Sprintf("available %d exceeds capacity %d", available, capacity))
	default:
		if o.observed == nil {
			o.observed = make([]Observation, 0, len(signalInfos))
		}
		o.observed = append(o.observed, Observation{Signal: s, Available: int64(available), Capacity: int64(capacity), At: at})
	}
}

// workingSet observes memory. The capacity is the sum of available memory and working set,
// so excessive usage is detected only by comparison with the machine's memory.
func (o *observer) workingSet(s Signal, m *statsapi.MemoryStats, machine int64) {
	if m == nil || m.AvailableBytes == nil || m.WorkingSetBytes == nil {
		return
	}
	available, used := *m.AvailableBytes, *m.WorkingSetBytes
	switch {
	case available > math.MaxInt64 || used > math.MaxInt64 || available+used > math.MaxInt64:
		o.reject(s, fmt.Sprintf("available %d, working set %d: negative, where it was computed", available, used))
	case machine > 0 && used > uint64(machine):
		o.reject(s, fmt.Sprintf("working set %d exceeds the machine's memory %d", used, machine))
	default:
		o.observe(s, available, available+used, m.Time.Time)
	}
}

func (o *observer) filesystem(bytes, inodes Signal, fs *statsapi.FsStats) {
	if fs == nil {
		return
	}
	half := func(s Signal, available, capacity, used *uint64) {
		switch {
		case available == nil || capacity == nil:
		case *capacity == 0 && s.Resource() == resourceInodes: // a file system without inode limit
		case used != nil && *used > *capacity && *used <= math.MaxInt64 && bytes == NodeFSAvailable:
			// The usage of the other file systems is the sum of images or layers,
			// which may share data.
			o.reject(s, fmt.Sprintf("used %d exceeds capacity %d", *used, *capacity))
		default:
			o.observe(s, *available, *capacity, fs.Time.Time)
		}
	}
	half(bytes, fs.AvailableBytes, fs.CapacityBytes, fs.UsedBytes)
	half(inodes, fs.InodesFree, fs.Inodes, fs.InodesUsed)
}

func (o *observer) processes(r *statsapi.RlimitStats) {
	if r == nil || r.MaxPID == nil || r.NumOfRunningProcesses == nil {
		return
	}
	most, running := *r.MaxPID, *r.NumOfRunningProcesses
	if most <= 0 || running < 0 || running > most {
		o.reject(PIDAvailable, fmt.Sprintf("%d processes, maximum %d", running, most))
		return
	}
	o.observe(PIDAvailable, uint64(most-running), uint64(most), r.Time.Time)
}

// find returns the observation of a signal.
func find(observed []Observation, s Signal) (Observation, bool) {
	for i := range observed {
		if observed[i].Signal == s {
			return observed[i], true
		}
	}
	return Observation{}, false
}
