package cm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/podspec"
)

// ResourcePID is how reservations of process IDs are called (cm-28).
const ResourcePID v1.ResourceName = "pid"

// Reserved is what pods can't have of a node.
type Reserved struct {
	// System and Kube are for the daemons of the system and of Kubernetes: cpu,
	// memory, ephemeral-storage, pid.
	System, Kube v1.ResourceList

	// Eviction is what hard eviction keeps free, memory and ephemeral-storage,
	// as amounts; see [EvictionReserve].
	Eviction v1.ResourceList
}

// Allocatable returns the part of the capacity that pods may use, as in the node's status:
// the capacity less the reservations, the reserve of hard eviction and, for memory, the
// huge pages (rule cm-22). No quantity is negative.
func Allocatable(capacity v1.ResourceList, r Reserved) v1.ResourceList {
	out := allocate(capacity, r.System, r.Kube, r.Eviction)
	memory, ok := out[v1.ResourceMemory]
	for name, q := range capacity {
		if ok && podspec.HugePagesSize(name) > 0 {
			memory.Sub(q)
			out[v1.ResourceMemory] = notNegative(memory)
		}
	}
	delete(out, ResourcePID) // it is no resource of pods
	return out
}

// allocate is capacity without each of the lists, as far as it names a resource.
func allocate(capacity v1.ResourceList, lists ...v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{}
	for name, q := range capacity {
		q = q.DeepCopy()
		for _, list := range lists {
			if less, ok := list[name]; ok {
				q.Sub(less)
			}
		}
		out[name] = notNegative(q)
	}
	return out
}

func notNegative(q resource.Quantity) resource.Quantity {
	if q.Sign() < 0 {
		return quantity(0)
	}
	return q
}

// CheckReserved returns an error if more is reserved than there is (cm-26). A reservation of a
// resource that the capacity does not have counts for nothing, as in Allocatable: a node without
// local storage capacity isolation has no ephemeral-storage, and a threshold of nodefs.available
// nevertheless.
func CheckReserved(capacity v1.ResourceList, r Reserved) error {
	total := v1.ResourceList{}
	for _, list := range []v1.ResourceList{r.System, r.Kube, r.Eviction} {
		for name, q := range list {
			if q.Sign() < 0 {
				return fmt.Errorf("cm: reservation of %s is negative: %v", name, &q)
			}
			sum := total[name]
			sum.Add(q)
			total[name] = sum
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(total)) {
		want := total[name]
		if has, ok := capacity[name]; ok && want.Cmp(has) > 0 {
			//lint:ignore ST1005 cm-26: word for word
			errs = append(errs, fmt.Errorf("invalid Node Allocatable configuration. Resource %q has a reservation of %v but capacity of %v. Expected capacity >= reservation.",
				name, &want, &has))
		}
	}
	return errors.Join(errs...)
}

// ReserveCPUs returns r with the CPU of system and kube together being the CPUs of
// the set, such as "0-1,8" (cm-27). "" changes nothing.
func (r Reserved) ReserveCPUs(set string) (Reserved, error) {
	if set == "" {
		return r, nil
	}
	cpus, err := topology.ParseCPUs(set)
	if err != nil {
		return r, fmt.Errorf("cm: reserved CPUs %q: %w", set, err)
	}
	r.System, r.Kube = maps.Clone(r.System), maps.Clone(r.Kube)
	if r.System == nil {
		r.System = v1.ResourceList{}
	}
	r.System[v1.ResourceCPU] = quantity(int64(cpus.Size()))
	delete(r.Kube, v1.ResourceCPU)
	return r, nil
}

// EvictionReserve returns the amounts that the hard eviction thresholds memory.available
// and nodefs.available keep free; percentages are of the capacity (rule cm-22). Other
// signals are ignored.
func EvictionReserve(hard map[string]string, capacity v1.ResourceList) (v1.ResourceList, error) {
	out := v1.ResourceList{}
	for signal, name := range map[string]v1.ResourceName{"memory.available": v1.ResourceMemory, "nodefs.available": v1.ResourceEphemeralStorage} {
		text, ok := hard[signal]
		if !ok || text == "0%" || text == "100%" { // which switch a signal off (ev-2)
			continue
		}
		if percent, ok := strings.CutSuffix(text, "%"); ok {
			p, err := strconv.ParseFloat(percent, 64)
			if err != nil || !(p >= 0 && p <= 100) {
				return nil, fmt.Errorf("cm: eviction threshold %s: invalid percentage %q", signal, text)
			}
			has := capacity[name]
			out[name] = quantity(int64(float64(has.Value()) * p / 100))
			continue
		}
		q, err := resource.ParseQuantity(text)
		if err != nil || q.Sign() < 0 {
			return nil, fmt.Errorf("cm: eviction threshold %s: invalid quantity %q", signal, text)
		}
		out[name] = q
	}
	return out, nil
}

// reservedResources returns the limits of the cgroup for a resource list: kubepods or a
// reservation (rules cm-23, cm-25). If compressible is true, only CPU is set.
func reservedResources(list v1.ResourceList, compressible bool) cgroups.Resources {
	var r cgroups.Resources
	if cpu, ok := list[v1.ResourceCPU]; ok {
		r.CPUShares = new(cgroups.Shares(podspec.MilliCPU(cpu)))
	}
	if compressible {
		return r
	}
	if memory, ok := list[v1.ResourceMemory]; ok && memory.Value() > 0 {
		r.Memory = new(memory.Value())
	}
	if pids, ok := list[ResourcePID]; ok && pids.Value() > 0 {
		r.Pids = new(pids.Value())
	}
	for name, q := range list {
		if size := podspec.HugePagesSize(name); size > 0 {
			if r.HugePages == nil {
				r.HugePages = map[int64]int64{}
			}
			r.HugePages[size] = max(q.Value(), 0)
		}
	}
	return r
}
