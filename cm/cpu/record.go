package cpu

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// StateFile is the name of the kubelet's checkpoint file in its root directory.
const StateFile = "cpu_manager_state"

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

// Dump implements checkpoint.KubeletRecord.
func (r *record) Dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "(*state.CPUManagerCheckpoint){PolicyName:(string)%s DefaultCPUSet:(string)%s Entries:(map[string]map[string]string)", r.PolicyName, r.DefaultCPUSet)
	checkpoint.DumpMap(&b, r.Entries, func(containers map[string]string) {
		checkpoint.DumpMap(&b, containers, func(cpus string) { b.WriteString(cpus) })
	})
	b.WriteString(" Checksum:(checksum.Checksum)0}")
	return b.String()
}

// Sum implements checkpoint.KubeletRecord.
func (r *record) Sum() *uint64 { return &r.Checksum }

// encode returns the checkpoint in the kubelet's format.
func (s assignments) encode() []byte {
	r := record{PolicyName: string(s.Policy), DefaultCPUSet: s.Shared.String(), Entries: map[string]map[string]string{}}
	for uid, containers := range s.Assigned {
		if len(containers) == 0 {
			continue
		}
		r.Entries[string(uid)] = map[string]string{}
		for name, cpus := range containers {
			r.Entries[string(uid)][name] = cpus.String()
		}
	}
	return checkpoint.EncodeKubelet(&r)
}

// decode parses a checkpoint of encode or of a kubelet; otherwise it returns ErrKubelet.
func decode(data []byte) (assignments, error) {
	r := record{Entries: map[string]map[string]string{}}
	if err := checkpoint.DecodeKubelet(data, &r); err != nil {
		return assignments{}, err
	}
	s := assignments{Policy: Policy(r.PolicyName), Assigned: map[types.UID]map[string]cpuset.CPUSet{}}
	var err error
	if s.Shared, err = topology.ParseCPUs(r.DefaultCPUSet); err != nil {
		return assignments{}, fmt.Errorf("%w: defaultCpuSet: %w", checkpoint.ErrKubelet, err)
	}
	for uid, containers := range r.Entries {
		s.Assigned[types.UID(uid)] = map[string]cpuset.CPUSet{}
		for name, list := range containers {
			cpus, err := topology.ParseCPUs(list)
			if err != nil {
				return assignments{}, fmt.Errorf("%w: container %q of pod %q: %w", checkpoint.ErrKubelet, name, uid, err)
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
