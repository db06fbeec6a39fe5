package cpu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/topology"
)

// A Running is a container that runs when the manager is opened, as the runtime reports
// it.
type Running struct {
	PodUID    types.UID
	Container string
	CPUs      cpuset.CPUSet // its cpuset; empty means all

	// Exclusive reports whether CPUs were allocated to it exclusively. See
	// [LooksExclusive].
	Exclusive bool
}

// LooksExclusive reports whether a container with the cpuset and the CPU shares (in the
// unit of cgroup v1) has exclusive CPUs: such a container requests exactly as many CPUs
// as it has.
func LooksExclusive(cpus cpuset.CPUSet, shares int64) bool {
	return !cpus.IsEmpty() && shares == int64(cpus.Size())*1024
}

// A ConflictError reports containers that run on CPUs that cannot be allocated to them:
// CPUs that are reserved, offline, or allocated to another pod. The caller may stop them
// and call Open again.
type ConflictError struct {
	Conflicts []Conflict
}

// A Conflict is one of these containers.
type Conflict struct {
	Running
	Why string
}

func (e *ConflictError) Error() string {
	var all []string
	for _, c := range e.Conflicts {
		all = append(all, fmt.Sprintf("container %q of pod %q on CPUs %s: %s", c.Container, c.PodUID, c.CPUs, c.Why))
	}
	return "cpu: containers run on CPUs that cannot be allocated to them: " + strings.Join(all, "; ")
}

// heal returns the assignments that are valid on the machine, from a checkpoint and the
// running containers. It is a pure function.
//
// Assignments of a checkpoint with the same policy have priority over the CPUs of running
// exclusive containers. An assignment that conflicts with the machine, the reservation or
// an earlier assignment is dropped; if its container runs, heal returns a *ConflictError.
// An empty saved.Policy means no checkpoint. A pool that is dropped is allocated again when its pod
// is admitted, with the CPUs that its containers keep.
func heal(m *topology.Machine, p Policy, opts Options, reserved cpuset.CPUSet, saved assignments, running []Running) (assignments, error) {
	healed := assignments{Policy: p, Assigned: map[types.UID]map[string]cpuset.CPUSet{}, Pools: map[types.UID]podPool{}}
	if p != Static {
		return healed, nil
	}
	claims := claimsOf(saved, running)
	conflict := &ConflictError{}
	owner := map[int]types.UID{} // pods may share among their own containers
	for _, claim := range claims {
		why := ""
		for _, id := range claim.CPUs.List() {
			has, taken := owner[id]
			switch _, there := m.Place(id); {
			case !there:
				why = fmt.Sprintf("CPU %d does not exist", id)
			case reserved.Contains(id):
				why = fmt.Sprintf("CPU %d is reserved", id)
			case taken && has != claim.PodUID:
				why = fmt.Sprintf("CPU %d is allocated to pod %q", id, has)
			}
		}
		if why != "" {
			if claim.runs {
				conflict.Conflicts = append(conflict.Conflicts, Conflict{Running: claim.Running, Why: why})
			}
			continue
		}
		for _, id := range claim.CPUs.List() {
			owner[id] = claim.PodUID
		}
		if claim.Container == "" {
			healed.Pools[claim.PodUID] = saved.Pools[claim.PodUID]
			continue
		}
		if healed.Assigned[claim.PodUID] == nil {
			healed.Assigned[claim.PodUID] = map[string]cpuset.CPUSet{}
		}
		healed.Assigned[claim.PodUID][claim.Container] = claim.CPUs
	}
	healed.Shared = pool(m, opts, reserved).Difference(healed.given())
	if len(conflict.Conflicts) > 0 {
		return healed, conflict
	}
	return healed, nil
}

// pool returns the shared pool while no CPUs are allocated.
func pool(m *topology.Machine, opts Options, reserved cpuset.CPUSet) cpuset.CPUSet {
	if opts.StrictReservation {
		return m.All().Difference(reserved)
	}
	return m.All()
}

// A claim of a pool has no container.
type claim struct {
	Running
	runs, saved bool
}

// claimsOf lists the assignments to check: first those of the checkpoint, then by pod and
// container.
func claimsOf(saved assignments, running []Running) []claim {
	type key struct {
		uid  types.UID
		name string
	}
	byKey := map[key]claim{}
	for _, r := range running {
		if r.Exclusive {
			byKey[key{r.PodUID, r.Container}] = claim{Running: r, runs: true}
		}
	}
	if saved.Policy == Static {
		for uid, containers := range saved.Assigned {
			for name, cpus := range containers {
				k := key{uid, name}
				runs := slices.ContainsFunc(running, func(r Running) bool { return r.PodUID == uid && r.Container == name })
				byKey[k] = claim{Running: Running{PodUID: uid, Container: name, CPUs: cpus, Exclusive: true}, runs: runs, saved: true}
			}
		}
		for uid, pool := range saved.Pools {
			byKey[key{uid, ""}] = claim{Running: Running{PodUID: uid, CPUs: pool.CPUs}, saved: true}
		}
	}
	claims := make([]claim, 0, len(byKey))
	for _, c := range byKey {
		if !c.CPUs.IsEmpty() {
			claims = append(claims, c)
		}
	}
	slices.SortFunc(claims, func(a, b claim) int {
		if a.saved != b.saved {
			if a.saved {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.PodUID, b.PodUID), cmp.Compare(a.Container, b.Container))
	})
	return claims
}

// foreign returns the error with which a kubelet refuses to start with a checkpoint (rule
// cpu-4); nil if it does not.
func foreign(m *topology.Machine, p Policy, opts Options, reserved cpuset.CPUSet, saved assignments, file string) error {
	const prefix = "could not restore state from checkpoint: "
	if saved.Policy != p {
		return fmt.Errorf(prefix+"configured policy %q differs from state checkpoint policy %q, please drain this node and delete the CPU manager checkpoint file %q before restarting Kubelet", p, saved.Policy, file)
	}
	if p != Static {
		return nil
	}
	if !opts.StrictReservation && !reserved.IsSubsetOf(saved.Shared) {
		return fmt.Errorf(prefix+"not all reserved cpus: %q are present in defaultCpuSet: %q", reserved, saved.Shared)
	}
	if overlap := saved.Shared.Intersection(saved.given()); !overlap.IsEmpty() {
		return fmt.Errorf(prefix+"CPUs %s are in the default cpuset and assigned", overlap)
	}
	if all := saved.Shared.Union(saved.given()); !all.Equals(pool(m, opts, reserved)) {
		return fmt.Errorf(prefix+"current set of available CPUs %q doesn't match with CPUs in state %q", pool(m, opts, reserved), all)
	}
	return nil
}
