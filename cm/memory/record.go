package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/state"
)

// StateFile is the name of the kubelet's checkpoint file in its root directory.
const StateFile = "memory_manager_state"

// errCorrupt is returned for a checkpoint that encode did not write.
var errCorrupt = errors.New("checkpoint is corrupted")

// A checkpointState is the content of a checkpoint.
type checkpointState struct {
	Policy   Policy
	Nodes    machineMemory // empty with the policy None
	Assigned assignedBlocks
}

// record is the format of the kubelet's file.
type record struct {
	PolicyName   string                        `json:"policyName"`
	MachineState machineMemory                 `json:"machineState"`
	Entries      map[string]map[string][]Block `json:"entries,omitempty"`
	Checksum     uint64                        `json:"checksum"`
}

// dump returns the text that the kubelet's checksum covers.
func (r record) dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "(*state.MemoryManagerCheckpoint){PolicyName:(string)%s MachineState:(state.NUMANodeMap)", r.PolicyName)
	dumpMap(&b, r.MachineState == nil, r.MachineState, func(n *nodeMemory) {
		if n == nil {
			b.WriteString("<nil>")
			return
		}
		fmt.Fprintf(&b, "<*>{NumberOfAssignments:(int)%d MemoryMap:(map[v1.ResourceName]*state.MemoryTable)", n.Assignments)
		dumpMap(&b, n.Memory == nil, n.Memory, func(t *memoryTable) {
			if t == nil {
				b.WriteString("<nil>")
				return
			}
			fmt.Fprintf(&b, "<*>{TotalMemSize:(uint64)%d SystemReserved:(uint64)%d Allocatable:(uint64)%d Reserved:(uint64)%d Free:(uint64)%d}", t.Total, t.Reserved, t.Allocatable, t.Given, t.Free)
		})
		b.WriteString(" Cells:([]int)" + dumpInts(n.Group) + "}")
	})
	b.WriteString(" Entries:(state.ContainerMemoryAssignments)")
	dumpMap(&b, false, r.Entries, func(containers map[string][]Block) {
		dumpMap(&b, containers == nil, containers, func(blocks []Block) {
			if blocks == nil {
				b.WriteString("<nil>")
				return
			}
			b.WriteByte('[')
			for i, block := range blocks {
				if i > 0 {
					b.WriteByte(' ')
				}
				fmt.Fprintf(&b, "{NUMAAffinity:([]int)%s Type:(v1.ResourceName)%s Size:(uint64)%d}", dumpInts(block.Nodes), block.Type, block.Size)
			}
			b.WriteByte(']')
		})
	})
	b.WriteString(" Checksum:(checksum.Checksum)0}")
	return b.String()
}

func dumpMap[K interface{ ~int | ~string }, V any](b *strings.Builder, none bool, m map[K]V, value func(V)) {
	if none {
		b.WriteString("<nil>")
		return
	}
	b.WriteString("map[")
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(b, "%v:", key)
		value(m[key])
	}
	b.WriteByte(']')
}

func dumpInts(list []int) string {
	if list == nil {
		return "<nil>"
	}
	return fmt.Sprint(list)
}

// encode returns the checkpoint in the kubelet's format.
func (s checkpointState) encode() []byte {
	r := record{PolicyName: string(s.Policy), MachineState: s.Nodes}
	if r.MachineState == nil {
		r.MachineState = machineMemory{}
	}
	for uid, containers := range s.Assigned {
		if len(containers) == 0 {
			continue
		}
		if r.Entries == nil {
			r.Entries = map[string]map[string][]Block{}
		}
		r.Entries[string(uid)] = containers
	}
	r.Checksum = state.Checksum(r.dump())
	data, _ := json.Marshal(r) // cannot fail
	return data
}

// decode parses a checkpoint of encode or of a kubelet; otherwise it returns errCorrupt.
func decode(data []byte) (checkpointState, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return checkpointState{}, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	if sum := state.Checksum(r.dump()); sum != r.Checksum {
		return checkpointState{}, fmt.Errorf("%w: checksum is %d and should be %d", errCorrupt, sum, r.Checksum)
	}
	s := checkpointState{Policy: Policy(r.PolicyName), Nodes: r.MachineState, Assigned: assignedBlocks{}}
	for id, n := range s.Nodes {
		if n == nil || n.Memory == nil {
			return checkpointState{}, fmt.Errorf("%w: NUMA node %d has no memory map", errCorrupt, id)
		}
		for kind, t := range n.Memory {
			if t == nil {
				return checkpointState{}, fmt.Errorf("%w: NUMA node %d has no table for %s", errCorrupt, id, kind)
			}
		}
	}
	for uid, containers := range r.Entries {
		s.Assigned[types.UID(uid)] = containers
	}
	return s, nil
}

// clone returns an independent copy.
func (a assignedBlocks) clone() assignedBlocks {
	c := assignedBlocks{}
	for uid, containers := range a {
		c[uid] = map[string][]Block{}
		for name, blocks := range containers {
			c[uid][name] = slices.Clone(blocks)
		}
	}
	return c
}
