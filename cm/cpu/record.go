package cpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
)

// StateFile is the name of the kubelet's checkpoint file in its root directory.
const StateFile = "cpu_manager_state"

// errCorrupt is returned for a checkpoint that encode did not write.
var errCorrupt = errors.New("checkpoint is corrupted")

// An assignments value is the content of a checkpoint.
type assignments struct {
	Policy Policy

	// Shared is the pool of the containers without exclusive CPUs. Empty with the policy
	// none.
	Shared cpuset.CPUSet

	// Assigned are the exclusive CPUs by pod and container.
	Assigned map[types.UID]map[string]cpuset.CPUSet
}

// record is the format of the kubelet's file.
type record struct {
	PolicyName    string                       `json:"policyName"`
	DefaultCPUSet string                       `json:"defaultCpuSet"`
	Entries       map[string]map[string]string `json:"entries,omitempty"`
	Checksum      uint64                       `json:"checksum"`
}

// dump returns the text that the kubelet's checksum covers.
func (r record) dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "(*state.CPUManagerCheckpoint){PolicyName:(string)%s DefaultCPUSet:(string)%s Entries:(map[string]map[string]string)map[", r.PolicyName, r.DefaultCPUSet)
	for i, uid := range slices.Sorted(maps.Keys(r.Entries)) {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(uid + ":map[")
		for j, name := range slices.Sorted(maps.Keys(r.Entries[uid])) {
			if j > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(name + ":" + r.Entries[uid][name])
		}
		b.WriteByte(']')
	}
	b.WriteString("] Checksum:(checksum.Checksum)0}")
	return b.String()
}

// encode returns the checkpoint in the kubelet's format.
func (s assignments) encode() []byte {
	r := record{PolicyName: string(s.Policy), DefaultCPUSet: s.Shared.String()}
	for uid, containers := range s.Assigned {
		if len(containers) == 0 {
			continue
		}
		if r.Entries == nil {
			r.Entries = map[string]map[string]string{}
		}
		r.Entries[string(uid)] = map[string]string{}
		for name, cpus := range containers {
			r.Entries[string(uid)][name] = cpus.String()
		}
	}
	r.Checksum = state.Checksum(r.dump())
	data, _ := json.Marshal(r) // cannot fail
	return data
}

// decode parses a checkpoint of encode or of a kubelet; otherwise it returns errCorrupt.
func decode(data []byte) (assignments, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return assignments{}, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	if sum := state.Checksum(r.dump()); sum != r.Checksum {
		return assignments{}, fmt.Errorf("%w: checksum is %d and should be %d", errCorrupt, sum, r.Checksum)
	}
	s := assignments{Policy: Policy(r.PolicyName), Assigned: map[types.UID]map[string]cpuset.CPUSet{}}
	var err error
	if s.Shared, err = topology.ParseCPUs(r.DefaultCPUSet); err != nil {
		return assignments{}, fmt.Errorf("%w: defaultCpuSet: %w", errCorrupt, err)
	}
	for uid, containers := range r.Entries {
		s.Assigned[types.UID(uid)] = map[string]cpuset.CPUSet{}
		for name, list := range containers {
			cpus, err := topology.ParseCPUs(list)
			if err != nil {
				return assignments{}, fmt.Errorf("%w: container %q of pod %q: %w", errCorrupt, name, uid, err)
			}
			s.Assigned[types.UID(uid)][name] = cpus
		}
	}
	return s, nil
}

// given returns all exclusive CPUs.
func (s assignments) given() cpuset.CPUSet {
	all := cpuset.New()
	for _, containers := range s.Assigned {
		for _, cpus := range containers {
			all = all.Union(cpus)
		}
	}
	return all
}

// clone returns a copy whose maps are independent.
func (s assignments) clone() assignments {
	c := assignments{Policy: s.Policy, Shared: s.Shared, Assigned: map[types.UID]map[string]cpuset.CPUSet{}}
	for uid, containers := range s.Assigned {
		c.Assigned[uid] = maps.Clone(containers)
	}
	return c
}
