package memory

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// StateFile is the name of the kubelet's checkpoint file in its root directory.
const StateFile = "memory_manager_state"

// A checkpointState is the content of a checkpoint.
type checkpointState struct {
	Policy   Policy
	Nodes    machineMemory // empty with the policy None
	Assigned assignedBlocks
	Pools    podPools
}

// record is the format of the kubelet's file. A kubelet before 1.37 does not know Data.
type record struct {
	PolicyName   string                        `json:"policyName"`
	MachineState machineMemory                 `json:"machineState"`
	Entries      map[string]map[string][]Block `json:"entries,omitempty"`
	Checksum     uint64                        `json:"checksum"`

	// Data is a recordData as JSON, which has the other fields once more. This manager writes it
	// only if there are pools.
	Data         string `json:"data,omitempty"`
	DataChecksum uint64 `json:"dataChecksum,omitempty"`
}

type recordData struct {
	PolicyName   string                        `json:"policyName"`
	MachineState machineMemory                 `json:"machineState"`
	Entries      map[string]map[string][]Block `json:"entries,omitempty"`
	PodEntries   map[string]podEntry           `json:"podEntries,omitempty"`
}

type podEntry struct {
	MemoryBlocks []Block  `json:"memoryBlocks,omitempty"`
	Shared       []string `json:"shared,omitempty"` // which a kubelet ignores
}

// Dump implements checkpoint.KubeletRecord.
func (r *record) Dump() string {
	var b strings.Builder
	ints := func(list []int) { checkpoint.DumpList(&b, list, func(n int) { b.WriteString(strconv.Itoa(n)) }) }
	fmt.Fprintf(&b, "(*state.MemoryManagerCheckpoint){PolicyName:(string)%s MachineState:(state.NUMANodeMap)", r.PolicyName)
	checkpoint.DumpMap(&b, r.MachineState, func(n *nodeMemory) {
		if n == nil {
			b.WriteString("<nil>")
			return
		}
		fmt.Fprintf(&b, "<*>{NumberOfAssignments:(int)%d MemoryMap:(map[v1.ResourceName]*state.MemoryTable)", n.Assignments)
		checkpoint.DumpMap(&b, n.Memory, func(t *memoryTable) {
			if t == nil {
				b.WriteString("<nil>")
				return
			}
			fmt.Fprintf(&b, "<*>{TotalMemSize:(uint64)%d SystemReserved:(uint64)%d Allocatable:(uint64)%d Reserved:(uint64)%d Free:(uint64)%d}", t.Total, t.Reserved, t.Allocatable, t.Given, t.Free)
		})
		b.WriteString(" Cells:([]int)")
		ints(n.Group)
		b.WriteString("}")
	})
	b.WriteString(" Entries:(state.ContainerMemoryAssignments)")
	checkpoint.DumpMap(&b, r.Entries, func(containers map[string][]Block) {
		checkpoint.DumpMap(&b, containers, func(blocks []Block) {
			checkpoint.DumpList(&b, blocks, func(block Block) {
				b.WriteString("{NUMAAffinity:([]int)")
				ints(block.Nodes)
				fmt.Fprintf(&b, " Type:(v1.ResourceName)%s Size:(uint64)%d}", block.Type, block.Size)
			})
		})
	})
	b.WriteString(" Checksum:(checksum.Checksum)0}")
	return b.String()
}

// Sum implements checkpoint.KubeletRecord.
func (r *record) Sum() *uint64 { return &r.Checksum }

// encode returns the checkpoint in the kubelet's format.
func (s checkpointState) encode() []byte {
	r := record{PolicyName: string(s.Policy), MachineState: s.Nodes, Entries: map[string]map[string][]Block{}}
	if r.MachineState == nil {
		r.MachineState = machineMemory{}
	}
	for uid, containers := range s.Assigned {
		if len(containers) == 0 {
			continue
		}
		r.Entries[string(uid)] = containers
	}
	if len(s.Pools) > 0 {
		d := recordData{r.PolicyName, r.MachineState, r.Entries, map[string]podEntry{}}
		for uid, pool := range s.Pools {
			d.PodEntries[string(uid)] = podEntry{pool.Blocks, slices.Sorted(maps.Keys(pool.Shared))}
		}
		r.Data, r.DataChecksum = checkpoint.EncodeKubeletData(d)
	}
	return checkpoint.EncodeKubelet(&r)
}

// decode parses a checkpoint of encode or of a kubelet; otherwise it returns ErrKubelet.
func decode(data []byte) (checkpointState, error) {
	r := record{Entries: map[string]map[string][]Block{}}
	if err := checkpoint.DecodeKubelet(data, &r); err != nil {
		return checkpointState{}, err
	}
	s := checkpointState{Policy: Policy(r.PolicyName), Nodes: r.MachineState, Assigned: assignedBlocks{}, Pools: podPools{}}
	for id, n := range s.Nodes {
		if n == nil || n.Memory == nil {
			return checkpointState{}, fmt.Errorf("%w: NUMA node %d has no memory map", checkpoint.ErrKubelet, id)
		}
		for kind, t := range n.Memory {
			if t == nil {
				return checkpointState{}, fmt.Errorf("%w: NUMA node %d has no table for %s", checkpoint.ErrKubelet, id, kind)
			}
		}
	}
	for uid, containers := range r.Entries {
		s.Assigned[types.UID(uid)] = containers
	}
	var d recordData
	if err := checkpoint.DecodeKubeletData(r.Data, r.DataChecksum, &d); err != nil {
		return checkpointState{}, err
	}
	for uid, entry := range d.PodEntries {
		s.Pools[types.UID(uid)] = entry.pool()
	}
	return s, nil
}

func (e podEntry) pool() podPool {
	p := podPool{Blocks: e.MemoryBlocks}
	for _, name := range e.Shared {
		if p.Shared == nil {
			p.Shared = map[string]bool{}
		}
		p.Shared[name] = true
	}
	return p
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
