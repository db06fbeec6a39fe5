package cpu

import (
	"fmt"
	"maps"
	"slices"
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

	// Assigned are the CPUs by pod and container: exclusive ones, and parts of Pools.
	Assigned map[types.UID]map[string]cpuset.CPUSet

	// Pools are the CPUs of pods that are allocated CPUs as a whole.
	Pools map[types.UID]podPool
}

// record is the format of the kubelet's file. A kubelet before 1.37 does not know Data.
type record struct {
	PolicyName    string                       `json:"policyName"`
	DefaultCPUSet string                       `json:"defaultCpuSet"`
	Entries       map[string]map[string]string `json:"entries,omitempty"`
	Checksum      uint64                       `json:"checksum"`

	// Data is a recordData as JSON, which has the other fields once more. This manager writes it
	// only if there are pools.
	Data         string `json:"data,omitempty"`
	DataChecksum uint64 `json:"dataChecksum,omitempty"`
}

type recordData struct {
	PolicyName    string                       `json:"policyName"`
	DefaultCPUSet string                       `json:"defaultCpuSet"`
	Entries       map[string]map[string]string `json:"entries,omitempty"`
	PodEntries    map[string]podEntry          `json:"podEntries,omitempty"`
}

type podEntry struct {
	CPUSet string   `json:"cpuSet,omitempty"`
	Shared []string `json:"shared,omitempty"` // which a kubelet ignores
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
	if len(s.Pools) > 0 {
		d := recordData{r.PolicyName, r.DefaultCPUSet, r.Entries, map[string]podEntry{}}
		for uid, pool := range s.Pools {
			d.PodEntries[string(uid)] = podEntry{pool.CPUs.String(), slices.Sorted(maps.Keys(pool.Shared))}
		}
		r.Data, r.DataChecksum = checkpoint.EncodeKubeletData(d)
	}
	return checkpoint.EncodeKubelet(&r)
}

// decode parses a checkpoint of encode or of a kubelet; otherwise it returns ErrKubelet.
func decode(data []byte) (assignments, error) {
	r := record{Entries: map[string]map[string]string{}}
	if err := checkpoint.DecodeKubelet(data, &r); err != nil {
		return assignments{}, err
	}
	s := assignments{Policy: Policy(r.PolicyName), Assigned: map[types.UID]map[string]cpuset.CPUSet{}, Pools: map[types.UID]podPool{}}
	var d recordData
	if err := checkpoint.DecodeKubeletData(r.Data, r.DataChecksum, &d); err != nil {
		return assignments{}, err
	}
	for uid, entry := range d.PodEntries {
		pool, err := entry.pool()
		if err != nil {
			return assignments{}, fmt.Errorf("%w: pod %q: %w", checkpoint.ErrKubelet, uid, err)
		}
		s.Pools[types.UID(uid)] = pool
	}
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

func (e podEntry) pool() (podPool, error) {
	cpus, err := topology.ParseCPUs(e.CPUSet)
	p := podPool{CPUs: cpus}
	for _, name := range e.Shared {
		if p.Shared == nil {
			p.Shared = map[string]bool{}
		}
		p.Shared[name] = true
	}
	return p, err
}

// given returns all CPUs that are not in the shared pool.
func (s assignments) given() cpuset.CPUSet {
	all := cpuset.New()
	for _, pool := range s.Pools {
		all = all.Union(pool.CPUs)
	}
	for _, containers := range s.Assigned {
		for _, cpus := range containers {
			all = all.Union(cpus)
		}
	}
	return all
}

// clone returns a copy whose maps are independent.
func (s assignments) clone() assignments {
	c := assignments{Policy: s.Policy, Shared: s.Shared, Assigned: map[types.UID]map[string]cpuset.CPUSet{}, Pools: map[types.UID]podPool{}}
	maps.Copy(c.Pools, s.Pools) // a pool is not changed, but replaced
	for uid, containers := range s.Assigned {
		c.Assigned[uid] = maps.Clone(containers)
	}
	return c
}
