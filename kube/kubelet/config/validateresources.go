package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/cpuset"
)

// formerThrottlingFactor is a default of earlier releases, which is accepted without the
// feature gate MemoryQoS.
const formerThrottlingFactor = 0.9

// idsUnit is the unit of userNamespaces.idsPerPod.
const idsUnit = 1 << 16

func (v validation) resourceRules() []rule {
	k := v.k
	period, custom, qos := *k.CPUCFSQuotaPeriod, v.gate("CustomCPUCFSQuotaPeriod"), v.gate("MemoryQoS")
	rules := []rule{
		when(k.SystemCgroups != "" && k.CgroupRoot == "", "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified"),
		when(!custom && period.Duration != 100*time.Millisecond, "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) %v requires feature gate CustomCPUCFSQuotaPeriod", period),
		when(custom && (period.Duration < time.Millisecond || period.Duration > time.Second), "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) %v must be between 1ms and 1sec, inclusive", period),
		when(!slices.Contains([]string{"none", "best-effort", "restricted", "single-numa-node"}, k.TopologyManagerPolicy),
			`topologyManagerPolicy (--topology-manager-policy) %q must be one of: ["none" "best-effort" "restricted" "single-numa-node"]`, k.TopologyManagerPolicy),
		when(!slices.Contains([]string{"container", "pod"}, k.TopologyManagerScope),
			`topologyManagerScope (--topology-manager-scope) %q must be one of: "container", or "pod"`, k.TopologyManagerScope),
		when(!slices.Contains([]string{"", "NoSwap", "LimitedSwap"}, k.MemorySwap.SwapBehavior),
			`memorySwap.swapBehavior %q must be one of: "", "LimitedSwap" or "NoSwap"`, k.MemorySwap.SwapBehavior),
		when(!qos && k.MemoryReservationPolicy == kubeletconfig.TieredReservationMemoryReservationPolicy,
			"memoryReservationPolicy %q requires MemoryQoS feature gate to be enabled", k.MemoryReservationPolicy),
		when(k.MemoryReservationPolicy != kubeletconfig.NoneMemoryReservationPolicy && k.MemoryReservationPolicy != kubeletconfig.TieredReservationMemoryReservationPolicy,
			`option %q specified for memoryReservationPolicy. Valid options are "None" or "TieredReservation"`, k.MemoryReservationPolicy),
	}
	if factor := k.MemoryThrottlingFactor; factor != nil {
		rules = append(rules,
			when(!qos && *factor != formerThrottlingFactor, "memoryThrottlingFactor must not be set when MemoryQoS feature gate is disabled"),
			when(!(*factor > 0 && *factor <= 1), "memoryThrottlingFactor %v must be greater than 0 and less than or equal to 1.0", *factor))
	}
	if k.UserNamespaces != nil && k.UserNamespaces.IDsPerPod != nil {
		rules = append(rules, idsRule(*k.UserNamespaces.IDsPerPod))
	}
	if cpus := k.ReservedSystemCPUs; cpus != "" {
		_, err := cpuset.Parse(cpus)
		rules = append(rules,
			when(k.SystemReservedCgroup != "" || k.KubeReservedCgroup != "", "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)"),
			when(err != nil, "unable to parse reservedSystemCPUs (--reserved-cpus) %v, error: %v", cpus, err))
	}
	return rules
}

func idsRule(ids int64) rule {
	switch {
	case ids < idsUnit:
		return when(true, "userNamespaces.idsPerPod must not be less than %d", idsUnit)
	case ids%idsUnit != 0:
		return when(true, "userNamespaces.idsPerPod must be a multiple of %d", idsUnit)
	}
	return when(ids > 1<<32-1, "userNamespaces.idsPerPod must not be more than %d", int64(1<<32-1))
}

func (v validation) taints() (errs []error) {
	for _, taint := range v.k.RegisterWithTaints {
		valid := len(utilvalidation.IsQualifiedName(taint.Key)) == 0 && (taint.Value == "" || len(utilvalidation.IsValidLabelValue(taint.Value)) == 0) &&
			slices.Contains([]v1.TaintEffect{"", v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}, taint.Effect)
		if !valid {
			errs = append(errs, fmt.Errorf("invalid taint: %v", taint))
		}
		if taint.TimeAdded != nil {
			errs = append(errs, errors.New("invalid configuration: taint.TimeAdded is not nil"))
		}
	}
	return errs
}

// The values of enforceNodeAllocatable.
const (
	enforceNone                       = "none"
	enforcePods                       = "pods"
	enforceSystemReserved             = "system-reserved"
	enforceSystemReservedCompressible = "system-reserved-compressible"
	enforceKubeReserved               = "kube-reserved"
	enforceKubeReservedCompressible   = "kube-reserved-compressible"
)

func (v validation) enforcements() (errs []error) {
	const of = "enforceNodeAllocatable (--enforce-node-allocatable)"
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("invalid configuration: "+format, args...))
	}
	all := v.k.EnforceNodeAllocatable
	for _, pair := range [][2]string{{enforceSystemReserved, enforceSystemReservedCompressible}, {enforceKubeReserved, enforceKubeReservedCompressible}} {
		if slices.Contains(all, pair[0]) && slices.Contains(all, pair[1]) {
			add("both %q and %q cannot be specified together in "+of, pair[0], pair[1])
		}
	}
	for i, value := range all {
		if slices.Contains(all[:i], value) {
			add("duplicated enforcements %q in "+of, value)
			continue
		}
		switch value {
		case enforcePods:
		case enforceSystemReserved, enforceSystemReservedCompressible:
			if v.k.SystemReservedCgroup == "" {
				add("systemReservedCgroup (--system-reserved-cgroup) must be specified when %q or %q included in "+of, enforceSystemReserved, enforceSystemReservedCompressible)
			}
		case enforceKubeReserved, enforceKubeReservedCompressible:
			if v.k.KubeReservedCgroup == "" {
				add("kubeReservedCgroup (--kube-reserved-cgroup) must be specified when %q or %q included in "+of, enforceKubeReserved, enforceKubeReservedCompressible)
			}
		case enforceNone:
			if len(all) > 1 {
				add("enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional enforcements when %q is specified", enforceNone)
			}
			continue
		default:
			add("option %q specified for "+of+". Valid options are %q, %q, %q, %q, %q or %q", value,
				enforcePods, enforceSystemReserved, enforceSystemReservedCompressible, enforceKubeReserved, enforceKubeReservedCompressible, enforceNone)
			continue
		}
		if !*v.k.CgroupsPerQOS {
			add("cgroupsPerQOS (--cgroups-per-qos) must be set to true when %q contained in "+of, value)
		}
	}
	return errs
}

func (v validation) reservedMemory() (errs []error) {
	type key struct {
		node int32
		name v1.ResourceName
	}
	seen := map[key]bool{}
	for _, r := range v.k.ReservedMemory {
		for name, amount := range r.Limits {
			if name != v1.ResourceMemory && !strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
				errs = append(errs, fmt.Errorf("invalid configuration: the limit type %q for NUMA node %d is not supported, only %v is accepted",
					name, r.NumaNode, []v1.ResourceName{v1.ResourceMemory, v1.ResourceHugePagesPrefix + "<HugePageSize>"}))
			}
			if amount.IsZero() {
				errs = append(errs, fmt.Errorf("invalid configuration: reserved memory may not be zero for NUMA node %d and resource %q", r.NumaNode, name))
			}
			if seen[key{r.NumaNode, name}] {
				errs = append(errs, fmt.Errorf("invalid configuration: the reserved memory has a duplicate value for NUMA node %d and resource %q", r.NumaNode, name))
			}
			seen[key{r.NumaNode, name}] = true
		}
	}
	return errs
}
