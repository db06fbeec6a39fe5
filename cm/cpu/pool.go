package cpu

import (
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

var (
	errEmptyPool     = errors.New("pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers")
	errEmptyInitPool = errors.New("pod rejected, pod has shared init containers but no cpus available for them")
)

// A podPool are the CPUs of a pod that is allocated CPUs as a whole.
type podPool struct {
	CPUs cpuset.CPUSet

	// Shared are the containers without exclusive CPUs. Their CPUs in assignments.Assigned are what
	// the exclusive ones leave of the pool. A kubelet does not save them: they are nil until the
	// pod is admitted again.
	Shared map[string]bool
}

// checkPool returns an error if containers of a pod with a pool of n CPUs have none.
func checkPool(pod *v1.Pod, n int, scope topology.Scope) error {
	sum, shared := 0, false
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		own := exclusiveCPUs(pod, c, scope)
		switch {
		case podspec.IsSidecar(c):
			sum += own
			shared = shared || own == 0
		case own == 0 && sum >= n:
			return errEmptyInitPool
		}
	}
	for i := range pod.Spec.Containers {
		own := exclusiveCPUs(pod, &pod.Spec.Containers[i], scope)
		sum += own
		shared = shared || own == 0
	}
	if shared && sum >= n {
		return errEmptyPool
	}
	return nil
}

// divide divides the CPUs of a pod among its containers (KEP-5526): exclusive ones for those that
// request them, which init containers leave to those that start after them; all others share what
// remains in the end, except that an init container has all CPUs that sidecars do not have yet.
// CPUs in has are kept. It is a pure function.
func divide(m *topology.Machine, opts Options, pod *v1.Pod, pool cpuset.CPUSet, has map[string]cpuset.CPUSet) (map[string]cpuset.CPUSet, map[string]bool, error) {
	assigned, shared := map[string]cpuset.CPUSet{}, map[string]bool{}
	free := pool
	for c := range podspec.Containers(pod) {
		n, passes := exclusiveCPUs(pod, c, opts.PodLevel), podspec.RunsToCompletion(pod, c.Name)
		if n == 0 {
			shared[c.Name] = true
			if passes {
				assigned[c.Name] = free
			}
			continue
		}
		cpus, ok := has[c.Name]
		if !ok {
			var err error
			if cpus, err = Take(m, opts, free, n); err != nil {
				return nil, nil, err
			}
		}
		assigned[c.Name] = cpus
		if !passes {
			free = free.Difference(cpus)
		}
	}
	for name := range shared {
		if _, ok := assigned[name]; !ok {
			assigned[name] = free
		}
	}
	return assigned, shared, nil
}

// allocatePool is Allocate for the first container of a pod that is allocated CPUs as a whole. It
// allocates those of all containers.
func (m *Manager) allocatePool(pod *v1.Pod, c *v1.Container, where topology.Hint) error {
	n := podExclusiveCPUs(pod, m.cfg.Options.PodLevel)
	if n == 0 {
		return nil
	}
	given, err := m.pinPool(pod, n, where)
	if err != nil {
		m.reportPin(PinInfo{Pod: pod, Container: c.Name, Error: err, Assignment: topology.PodExclusive})
		return err
	}
	for _, info := range given {
		m.reportPin(info)
	}
	if len(given) > 0 {
		m.poolChanged()
	}
	return nil
}

// pinPool allocates the CPUs of a pod as a whole and divides them, unless it has them already. It returns
// what its containers have got.
func (m *Manager) pinPool(pod *v1.Pod, n int, where topology.Hint) ([]PinInfo, error) {
	if err := checkPool(pod, n, m.cfg.Options.PodLevel); err != nil {
		return nil, &runtime.Rejection{Reason: topology.ReasonEmptyPool, Message: err.Error(), Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	pool, known := m.state.Pools[pod.UID]
	if known && pool.Shared != nil {
		return nil, nil
	}
	has := m.state.Assigned[pod.UID]
	if !known { // containers may run with CPUs of a lost checkpoint
		for _, cpus := range has {
			pool.CPUs = pool.CPUs.Union(cpus)
		}
		more, err := m.takeWhole(pod, max(0, n-pool.CPUs.Size()), where)
		if err != nil {
			return nil, err
		}
		pool.CPUs = pool.CPUs.Union(more)
	}
	assigned, shared, err := divide(m.cfg.Machine, m.cfg.Options, pod, pool.CPUs, has)
	if err != nil {
		return nil, err
	}
	pool.Shared = shared
	next := m.state.clone()
	next.Pools[pod.UID], next.Assigned[pod.UID] = pool, assigned
	if err := m.replaceLocked(next); err != nil {
		return nil, err
	}
	var given []PinInfo
	for c := range podspec.Containers(pod) {
		info := PinInfo{Pod: pod, Container: c.Name, CPUs: assigned[c.Name], Assignment: topology.PodExclusive}
		if shared[c.Name] {
			info.Assignment = topology.PodShared
		}
		if _, kept := has[c.Name]; !kept {
			given = append(given, info)
		}
	}
	return given, nil
}

// takeWhole selects n free CPUs for a pod, whole cores if Options.FullPCPUsOnly is set.
func (m *Manager) takeWhole(pod *v1.Pod, n int, where topology.Hint) (cpuset.CPUSet, error) {
	if n == 0 {
		return cpuset.New(), nil
	}
	free, _, err := m.wholeOnly(n, m.freeLocked(), cpuset.New())
	if err != nil {
		return cpuset.New(), err
	}
	return place(m.cfg.Machine, m.cfg.Options, free, n, where)
}

// PodCPUs returns the CPUs of a pod that is allocated CPUs as a whole (see Options.PodLevel), those of
// its containers included; none for other pods.
func (m *Manager) PodCPUs(uid types.UID) cpuset.CPUSet {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Pools[uid].CPUs
}
