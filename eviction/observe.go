package eviction

import (
	"fmt"
	"math"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// An Observation is what a signal was seen to be. Both figures are in bytes,
// inodes or processes, and neither is below zero.
type Observation struct {
	Signal              Signal
	Available, Capacity int64
	At                  time.Time // of the measurement; zero if that is not known
}

// Invalid is a signal whose figures cannot be true. It counts as not observed:
// nobody is evicted for nonsense (F-17).
type Invalid struct {
	Signal Signal
	Why    string
}

// A MemoryFigure is how much memory there is, by a measure of the user's (F-16).
type MemoryFigure struct {
	Available, Capacity int64     // bytes
	At                  time.Time // of the measurement

	// Err is why there is no figure: memory.available is not observed then.
	Err error
}

// Observe reads the signals from a summary. A signal whose figures are missing
// is not observed (ev-14). memory, if it is not nil, is what memory.available
// goes by, instead of the working set. machine is how much memory the node has,
// in bytes, as a check; zero: not known.
func Observe(summary *statsapi.Summary, memory *MemoryFigure, machine int64) (seen []Observation, invalid []Invalid) {
	if summary == nil {
		summary = new(statsapi.Summary)
	}
	o := observer{}
	node := &summary.Node
	switch {
	case memory != nil && memory.Err != nil:
	case memory != nil:
		if memory.Available < 0 || memory.Capacity < 0 {
			o.doubt(MemoryAvailable, fmt.Sprintf("available %d of %d", memory.Available, memory.Capacity))
		} else {
			o.take(MemoryAvailable, uint64(memory.Available), uint64(memory.Capacity), memory.At)
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
	return o.seen, o.invalid
}

type observer struct {
	seen    []Observation
	invalid []Invalid
}

func (o *observer) doubt(s Signal, why string) { o.invalid = append(o.invalid, Invalid{s, why}) }

// take takes figures that cannot be wrong by themselves.
func (o *observer) take(s Signal, available, capacity uint64, at time.Time) {
	switch {
	case available > math.MaxInt64 || capacity > math.MaxInt64:
		o.doubt(s, fmt.Sprintf("available %d of %d: below zero, where it was computed", available, capacity))
	case capacity == 0:
		o.doubt(s, "a capacity of zero")
	case available > capacity:
		o.doubt(s, fmt.Sprintf("available %d is more than the capacity of %d", available, capacity))
	default:
		if o.seen == nil {
			o.seen = make([]Observation, 0, len(facts))
		}
		o.seen = append(o.seen, Observation{Signal: s, Available: int64(available), Capacity: int64(capacity), At: at})
	}
}

// workingSet takes memory by its working set. The capacity is the sum of what is
// and what is not used, so a use beyond it shows only against the machine's.
func (o *observer) workingSet(s Signal, m *statsapi.MemoryStats, machine int64) {
	if m == nil || m.AvailableBytes == nil || m.WorkingSetBytes == nil {
		return
	}
	available, used := *m.AvailableBytes, *m.WorkingSetBytes
	switch {
	case available > math.MaxInt64 || used > math.MaxInt64 || available+used > math.MaxInt64:
		o.doubt(s, fmt.Sprintf("available %d, working set %d: below zero, where it was computed", available, used))
	case machine > 0 && used > uint64(machine):
		o.doubt(s, fmt.Sprintf("a working set of %d, the machine has %d", used, machine))
	default:
		o.take(s, available, available+used, m.Time.Time)
	}
}

func (o *observer) filesystem(bytes, inodes Signal, fs *statsapi.FsStats) {
	if fs == nil {
		return
	}
	half := func(s Signal, available, capacity, used *uint64) {
		switch {
		case available == nil || capacity == nil:
		case *capacity == 0 && s.Resource() == resourceInodes: // file systems that count none
		case used != nil && *used > *capacity && *used <= math.MaxInt64 && bytes == NodeFSAvailable:
			// Of the others the use is that of images or layers, which may share
			// what they have; it says nothing of the file system.
			o.doubt(s, fmt.Sprintf("used %d of a capacity of %d", *used, *capacity))
		default:
			o.take(s, *available, *capacity, fs.Time.Time)
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
		o.doubt(PIDAvailable, fmt.Sprintf("%d processes of at most %d", running, most))
		return
	}
	o.take(PIDAvailable, uint64(most-running), uint64(most), r.Time.Time)
}

// find returns the observation of a signal.
func find(seen []Observation, s Signal) (Observation, bool) {
	for i := range seen {
		if seen[i].Signal == s {
			return seen[i], true
		}
	}
	return Observation{}, false
}
